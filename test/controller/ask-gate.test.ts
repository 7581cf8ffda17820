/** Tests which pods of a batch need the permission of a gate. */
import { describe, expect, it, test } from "vitest";
import { GATE_ANNOTATION } from "../../shared/api/names.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { askGate } from "../../shared/controller/rollout/decide-round.ts";
import type { Context, Snapshot } from "../../shared/controller/rollout/observe.ts";
import { MAX_RESERVATIONS, type Reservation } from "../../shared/core/ledger.ts";
import { type Decision, decide } from "../../shared/core/rollout/decide.ts";
import { narrow } from "../../shared/core/rollout/narrow.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type GateRequest, gateHold, no } from "../../shared/core/rollout/rules/gate/approval.ts";
import { NOW, podOf, reservedFor, sidecarSetOf, UNTOUCHED } from "../support/rollout-fixture.ts";

const CONTEXT = { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };
const PODS = ["a", "b"].map((name) => podOf({ name }));

type Names = readonly string[];
type Row = [where: string, stored: Names, kept: Names, asked: Names, allowed: Names];

function gatedSet() {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: 2 } });
  const annotations = { ...set.metadata?.annotations, [GATE_ANNOTATION]: "https://gate.example/batch" };
  return { ...set, metadata: { ...set.metadata, annotations }, status: { observedGeneration: 2 } };
}

function reservationOf(name: string): Reservation {
  const { namespace = "", uid = "", resourceVersion = "" } = podOf({ name }).metadata ?? {};
  return { namespace, name, uid, resourceVersion, generation: 2, revision: "r" };
}
const patched = ({ actions }: Decision) =>
  actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));

test.each<Row>([
  ["no pod is reserved", [], [], ["a", "b"], []],
  ["one pod is still reserved", ["a"], ["a"], ["b"], ["a"]],
  ["a reservation was released because somebody else wrote to the pod", ["a"], [], ["a", "b"], []],
])(
  "the gate is called about the pods of a batch that are not reserved: when %s",
  async (...[, stored, kept, asked, allowed]) => {
    const sidecarSet = gatedSet();
    const uids = kept.map((name) => reservationOf(name).uid);
    const decision = decide(
      { sidecarSet, pods: PODS, revisions: [], ...UNTOUCHED, reserved: reservedFor(uids) },
      CONTEXT,
    );
    expect(patched(decision).toSorted()).toEqual(["a", "b"]);
    const requests: GateRequest[] = [];
    const ask = async (_: URL, request: GateRequest) => {
      requests.push(request);
      return { allow: false, reason: "freeze" } as const;
    };
    const context = { gates: { ask, refusals: new Map() }, clock: systemClock, endsAtMs: Number.POSITIVE_INFINITY };
    const snapshot = {
      sidecarSet,
      stored: { ledger: { uid: "", generation: 2, reservations: stored.map(reservationOf) } },
    };
    const asking = { reserved: new Set(uids), mayAsk: true };
    const gate = await askGate(context as unknown as Context, snapshot as unknown as Snapshot, decision, asking);
    const passed = narrow(decision, { gate }, asking.reserved);
    expect(requests.flatMap(({ pods }) => pods.map(({ name }) => name)).toSorted()).toEqual(asked);
    expect(patched(passed)).toEqual(allowed);
  },
);

/** Returns the requests to a gate, and the decision after them. */
async function asking({ pods: count = 2, kept = 0, endsAtMs = Number.POSITIVE_INFINITY } = {}) {
  const sidecarSet = gatedSet();
  const strategy = { maxUnavailable: "100%" };
  const set = { ...sidecarSet, spec: { ...sidecarSet.spec, updateStrategy: strategy } };
  const one = decide({ sidecarSet: set, pods: [podOf({ name: "p" })], revisions: [], ...UNTOUCHED }, CONTEXT);
  const reservations = Array.from({ length: count }, (_, index) => reservationOf(`p-${index}`));
  // The pods are alike, because one decision about so many different pods would take long.
  const patches = one.actions.filter((action) => action.kind === "PatchPod");
  const actions = patches.flatMap((patch) => reservations.map((pod) => ({ ...patch, pod })));
  const decision = { ...one, actions };
  const clock = { ...systemClock, now: () => 0, epochMs: () => epoch.ms };
  const epoch = { ms: Date.UTC(2026, 0, 10) };
  const asked: (readonly [pods: number, timeoutMs: number])[] = [];
  const requests: GateRequest[] = [];
  const answers: { allow: boolean } = { allow: false };
  const ask = async (_: URL, request: GateRequest, timeoutMs: number) => {
    requests.push(request);
    asked.push([request.pods.length, timeoutMs]);
    return answers.allow ? ({ allow: true } as const) : ({ allow: false, reason: `freeze ${asked.length}` } as const);
  };
  const context = { gates: { ask, refusals: new Map() }, clock, endsAtMs } as unknown as Context;
  const reserved = reservations.slice(0, kept);
  const stored = { ledger: { uid: "", generation: 2, reservations: reserved } };
  const pass = async (mayAsk = true, sidecarSetNow: typeof set = set) => {
    const snapshot = { sidecarSet: sidecarSetNow, stored } as unknown as Snapshot;
    return await askGate(context, snapshot, decision, { reserved: new Set(reserved.map(({ uid }) => uid)), mayAsk });
  };
  return { pass, asked, requests, answers, epoch, context, set };
}

describe("askGate:", () => {
  it("a gate that refused is called again after half a minute, or earlier when the clock was set back", async () => {
    const { pass, asked, epoch, answers } = await asking();
    expect(await pass()).toBe("freeze 1");
    expect(await pass()).toBe("freeze 1");
    epoch.ms += 29_999;
    expect(await pass()).toBe("freeze 1");
    epoch.ms += 1;
    expect(await pass()).toBe("freeze 2");
    epoch.ms -= 1;
    expect(await pass()).toBe("freeze 3");
    epoch.ms += 30_000;
    answers.allow = true;
    expect(await pass()).toBeUndefined();
    expect(await pass(false)).toBeUndefined();
    expect(asked).toHaveLength(4);
  });

  it("a gate that did not answer in time is not called for other SidecarSets for half a minute", async () => {
    const { pass, asked, epoch, set, context } = await asking();
    const hanging = context.gates?.ask;
    const another = { ...set, metadata: { ...set.metadata, uid: "another" } };
    const ask: typeof hanging = async (...call) => {
      const answer = await hanging?.(...call);
      epoch.ms += call[2];
      return answer ?? { allow: true };
    };
    Object.assign(context.gates ?? {}, { ask });
    expect(await pass()).toBe("freeze 1");
    expect(await pass(true, another)).toBe("freeze 1");
    expect(asked).toHaveLength(1);
    epoch.ms += 30_000;
    expect(await pass(true, { ...set, metadata: { ...set.metadata, uid: "a third" } })).toBe("freeze 2");
  });

  it("a late approval counts only for its own batch, for example after a freeze or a change of the clock", async () => {
    const { pass, asked, answers, epoch, set, context } = await asking();
    const slow = context.gates?.ask;
    const ask: typeof slow = async (...call) => {
      const answer = await slow?.(...call);
      epoch.ms += asked.length === 1 ? call[2] : 0;
      return answer ?? { allow: false, reason: "" };
    };
    Object.assign(context.gates ?? {}, { ask });
    answers.allow = true;
    expect(await pass()).toBeUndefined();
    answers.allow = false;
    expect(await pass(true, { ...set, metadata: { ...set.metadata, uid: "another" } })).toBe("freeze 2");
  });

  it("a gate that did not answer within the rest of a pass is called for other SidecarSets", async () => {
    const { pass, asked, epoch, set, context } = await asking({ endsAtMs: 2_100 });
    const slow = context.gates?.ask;
    const ask: typeof slow = async (...call) => {
      const answer = await slow?.(...call);
      epoch.ms += call[2];
      return answer ?? { allow: true };
    };
    Object.assign(context.gates ?? {}, { ask });
    await pass();
    await pass(true, { ...set, metadata: { ...set.metadata, uid: "another" } });
    expect(asked.map(([, timeoutMs]) => timeoutMs)).toEqual([500, 500]);
  });

  it("a gate is not reported as down after half a second without an answer, but after five seconds it is", async () => {
    const holdAfter = async (endsAtMs: number) => {
      const { pass, context } = await asking({ endsAtMs });
      const ask = async (url: URL, _: GateRequest, timeoutMs: number) =>
        no(url.host, `did not answer within ${timeoutMs / 1_000} s`);
      Object.assign(context.gates ?? {}, { ask });
      return gateHold((await pass()) ?? "");
    };
    expect(await holdAfter(2_100)).toEqual({
      hold: "gate",
      rules: {
        gate: "the gate at gate.example has not answered yet: a pass had 0.5 s left for it, and another one asks again",
      },
    });
    expect((await holdAfter(Number.POSITIVE_INFINITY)).hold).toBe("gateDown");
  });

  it("a gate's refusal counts until its next answer, also if the gate had no time to answer again", async () => {
    const { pass, asked, epoch, context } = await asking();
    expect(await pass()).toBe("freeze 1");
    epoch.ms += 31_000;
    const ask = async (url: URL, { pods }: GateRequest, timeoutMs: number) => {
      asked.push([pods.length, timeoutMs]);
      return no(url.host, `did not answer within ${timeoutMs / 1_000} s`);
    };
    Object.assign(context, { endsAtMs: 2_100 });
    Object.assign(context.gates ?? {}, { ask });
    expect(await pass()).toBe("freeze 1");
    expect(asked).toHaveLength(2);
  });

  it("when a gate may not be called, its last answer for the same generation counts at any age", async () => {
    const { pass, asked, epoch, set } = await asking();
    expect(await pass(false)).toBeUndefined();
    await pass();
    epoch.ms += 3_600_000;
    expect(await pass(false)).toBe("freeze 1");
    expect(await pass(false, { ...set, metadata: { ...set.metadata, generation: 3 } })).toBeUndefined();
    expect(asked).toHaveLength(1);
  });

  it("a gate's answer counts only for one SidecarSet, and the request names the revision", async () => {
    const { pass, requests, set } = await asking();
    expect(await pass()).toBe("freeze 1");
    expect(await pass(true, { ...set, metadata: { ...set.metadata, uid: "another" } })).toBe("freeze 2");
    expect(requests.map(({ sidecarSet, revision }) => [sidecarSet.uid, revision])).toEqual([
      [set.metadata?.uid, expect.stringMatching(/^.+-[a-z0-9]+$/)],
      ["another", expect.any(String)],
    ]);
  });

  it("a gate is called about at most as many pods as the ledger can reserve", async () => {
    const pods = MAX_RESERVATIONS + 2;
    const empty = await asking({ pods });
    await empty.pass();
    const some = await asking({ pods, kept: 1_500 });
    await some.pass();
    const all = await asking({ pods: MAX_RESERVATIONS, kept: MAX_RESERVATIONS });
    await all.pass();
    // All these answers are remembered.
    expect([empty, some, all].map(({ asked }) => asked[0]?.[0])).toEqual([MAX_RESERVATIONS, 500, undefined]);
  });

  it.each([
    ["five seconds", Number.POSITIVE_INFINITY, 5_000],
    ["the remaining time of the pass minus two seconds", 5_500.9, 3_500],
    ["at least half a second", 2_100, 500],
  ])("a gate gets %s to answer", async (_, endsAtMs, timeoutMs) => {
    const { pass, asked } = await asking({ endsAtMs });
    await pass();
    expect(asked.map(([, ms]) => ms)).toEqual([timeoutMs]);
  });

  it("a gate that no setting allows counts as a refusal", async () => {
    const { context, set } = await asking();
    const decision = decide({ sidecarSet: set, pods: PODS, revisions: [], ...UNTOUCHED }, CONTEXT);
    const stored = { ledger: { uid: "", generation: 2, reservations: [] } };
    const snapshot = { sidecarSet: set, stored } as unknown as Snapshot;
    const reserved = new Set<string>();
    const gate = await askGate({ ...context, gates: undefined }, snapshot, decision, { reserved, mayAsk: true });
    expect(gate).toBe("the gate at gate.example may not be asked: GATE_HOSTS names no host");
    expect(patched(narrow(decision, { gate }, reserved))).toEqual([]);
  });
});
