/** Tests rounds without writes: in record mode, without changes, and when the round must read again first. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  GATE_ANNOTATION,
  HALT_ON_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import { timestamp } from "../../shared/controller/loop/clock.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { type Context, observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { round } from "../../shared/controller/rollout/round.ts";
import { MAX_RESERVATIONS } from "../../shared/core/ledger.ts";
import { NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE, NAMESPACE } from "./fixture.ts";

type Annotations = Readonly<Record<string, string>>;

/** Prepares pods of version 1 and a new version 2; all facts about version 1 are recorded. */
async function stage(count = 2, { refuse, annotations = {} }: { refuse?: Refuse; annotations?: Annotations } = {}) {
  const on = bareRollout("set", refuse);
  const look = async (context: Context = on.context): Promise<Snapshot> => {
    const snapshot = await observe(context, "set");
    if (!snapshot) throw new Error("there is no SidecarSet");
    return snapshot;
  };
  const annotate = (more: Annotations) => {
    const { metadata, ...set } = on.readSet();
    const next = { ...metadata, annotations: { ...metadata?.annotations, ...more } };
    on.server.put("test", SIDECARSETS, { ...set, metadata: next });
  };
  on.deploy(count, { maxUnavailable: 1 });
  await round(on.context, await look(), "act");
  on.release(2, { maxUnavailable: 1 });
  annotate(annotations);
  /** Returns the result of the work, and the calls during it. */
  const during = async <T>(work: () => Promise<T>): Promise<readonly [T, readonly string[]]> => {
    const before = on.calls.length;
    const result = await work();
    return [result, on.calls.slice(before).map(([, call]) => call)];
  };
  return { ...on, look, annotate, during };
}

describe("record mode:", () => {
  it("a round in record mode creates no revision, reserves no pod and writes no pod", async () => {
    const { context, look, during, versions } = await stage();
    const snapshot = await look();
    const [result, calls] = await during(() => round(context, snapshot, "record"));
    expect(result).toMatchObject({ written: 0, reserved: 0, isMoreToWrite: false });
    expect(calls.filter((call) => !call.startsWith("GET"))).toEqual([
      "PATCH configmaps",
      "PATCH sidecarsets/status",
      "CREATE events",
    ]);
    expect(versions()).toBe("1 1");
  });

  it("a round in record mode does not call the gate", async () => {
    const { context, look } = await stage(2, { annotations: { [GATE_ANNOTATION]: "https://gate.example/batch" } });
    let asked = 0;
    const ask = async () => {
      asked++;
      return { allow: true } as const;
    };
    const gated = { ...context, gates: { ask, refusals: new Map() } };
    const snapshot = await look(gated);
    await round(gated, snapshot, "record");
    expect(asked).toBe(0);
    await round(gated, snapshot, "act");
    expect(asked).toBe(1);
  });

  it.each([
    ["record", 2],
    ["act", 1],
  ] as const)("a halted release is undone only by a round in act mode, here %s", async (mode, version) => {
    const annotations = { [HALT_ON_ANNOTATION]: "0", [UNDO_ON_HALT_ANNOTATION]: "true" };
    const { context, clock, look, settle, readPod, server, readSet } = await stage(2, { annotations });
    await round(context, await look(), "act");
    settle(0, false);
    const { status, ...pod } = readPod(0);
    const containerStatuses = status?.containerStatuses?.map((one) =>
      one.name === "proxy" ? { ...one, restartCount: 9, state: { waiting: { reason: "CrashLoopBackOff" } } } : one,
    );
    // The pod was ready until this time.
    const lastTransitionTime = timestamp({ ...clock, epochMs: () => clock.epochMs() + 60_000 });
    const conditions = status?.conditions?.map((one) => ({ ...one, lastTransitionTime }));
    server.put("kubelet", PODS, { ...pod, status: { ...status, conditions, containerStatuses } } as Pod);
    const result = await round(context, await look(), mode);
    expect(result?.decision.summary.hold).toBe("halted");
    expect(readSet().spec.containers?.[0]?.image).toBe(`registry.example/proxy:${version}`);
  });
});

describe("the ledger:", () => {
  it("a round does not write a ledger that has not changed", async () => {
    const { context, look, during } = await stage();
    const snapshot = await look();
    await round(context, snapshot, "act");
    const [, calls] = await during(() => round(context, snapshot, "act"));
    expect(calls).not.toContain("CREATE configmaps");
    // The pass has released the reservation.
    expect(calls.filter((call) => call === "PATCH configmaps")).toHaveLength(1);
    const [, later] = await during(() => round(context, snapshot, "act"));
    expect(later.filter((call) => call.endsWith("configmaps"))).toEqual([]);
  });

  it.each<[string, Partial<Pick<Snapshot, "missed">>, number]>([
    ["no time when nothing is reserved and no pod may be evicted", { missed: [] }, 0],
    ["once when pods that missed their sidecars may be evicted", { missed: [{} as Pod] }, 1],
    ["once when it is unknown which pods missed their sidecars", { missed: undefined }, 1],
  ])("a round that created the ledger reads the SidecarSet again %s", async (_, missed, reads) => {
    const on = bareRollout("set");
    on.deploy(1);
    const snapshot = await observe(on.context, "set");
    if (!snapshot) throw new Error("there is no SidecarSet");
    const before = on.calls.length;
    await round(on.context, { ...snapshot, ...missed }, "act");
    const calls = on.calls.slice(before).map(([, call]) => call);
    expect(calls).toContain("CREATE configmaps");
    expect(calls.filter((call) => call === "GET sidecarsets")).toHaveLength(reads);
  });
});

describe("the status:", () => {
  const WAVES = JSON.stringify([
    { name: "first", namespaceSelector: { matchLabels: { stage: "first" } } },
    { name: "second", namespaceSelector: { matchLabels: { stage: "second" } } },
  ]);
  /** Runs another round shortly after the write; its first pod is ready again. */
  async function again(mode: "act" | "record", annotations: Annotations = {}, afterMs = 0) {
    const { context, server, look, settle, clock, during } = await stage(1, { annotations });
    server.put("test", NAMESPACES, { metadata: { name: NAMESPACE, uid: NAMESPACE, labels: { stage: "first" } } });
    const snapshot = await look();
    await round(context, snapshot, "act");
    settle(0);
    await clock.sleep(afterMs);
    const later = { ...(await look()), sidecarSet: snapshot.sidecarSet };
    const [result, calls] = await during(() => round(context, later, mode));
    const writes = calls.filter((call) => call === "PATCH sidecarsets/status").length;
    return { writes, isStatusOwed: result?.isStatusOwed, isWaveNext: result?.isWaveNext };
  }

  it.each<[string, readonly [atMs: number, writes: number, isOwed: boolean]]>([
    ["waits until a second has passed since the last write", [999, 0, true]],
    ["is written after a second", [1_000, 1, false]],
  ])("a changed status %s", async (_, [afterMs, writes, isStatusOwed]) => {
    expect(await again("act", {}, afterMs)).toEqual({ writes, isStatusOwed, isWaveNext: false });
  });

  it("a changed status is written at once in record mode", async () => {
    expect(await again("record")).toEqual({ writes: 1, isStatusOwed: false, isWaveNext: false });
  });

  it("a changed status is written at once when it passes a wave", async () => {
    const annotations = { [WAVES_ANNOTATION]: WAVES };
    expect(await again("act", annotations)).toEqual({ writes: 1, isStatusOwed: false, isWaveNext: true });
  });
});

describe("isMoreToWrite:", () => {
  /**
   * True if another round must follow a round over four pods, which may all go down. `lines`: the ledger's remaining
   * room; awaited pods fill the rest.
   */
  async function isMore(lines: number, refuse?: Refuse) {
    const strategy = { maxUnavailable: 2 * MAX_RESERVATIONS };
    const on = bareRollout("set", refuse);
    on.deploy(4, strategy);
    on.release(2, strategy);
    const gone = { namespace: NAMESPACE, owner: "web", of: -1, since: "", until: "2100-01-01T00:00:00Z" };
    const departed = Array.from({ length: MAX_RESERVATIONS - lines }, (_, index) => {
      return { ...gone, name: `gone-${index}`, uid: `gone-${index}` };
    });
    const place = { namespace: KRUISE_NAMESPACE, owner: on.readSet() };
    const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, "set");
    await swapLedger(on.cluster, place, stored, { uid: "uid-set", generation: 2, reservations: [], departed });
    const snapshot = await observe(on.context, "set");
    const result = snapshot && (await round(on.context, snapshot, "act"));
    return [result?.decision.summary.selected, result?.written, result?.isMoreToWrite];
  }
  const refuseFirst: Refuse = (call, nth) => (call === "PATCH pods" && nth === 1 ? refusal(422, "no") : undefined);

  it("a round says that there is more to write when the ledger had no lines for the remaining pods", async () => {
    expect(await isMore(2)).toEqual([4, 2, true]);
  });

  it("a round says that there is more to write when one pod was refused, because this leaves room for another pod", async () => {
    expect(await isMore(2, refuseFirst)).toEqual([4, 2, true]);
    expect(await isMore(1, refuseFirst)).toEqual([4, 1, true]);
  });

  it("a round does not say that there is more to write when it wrote all pods", async () => {
    expect(await isMore(4)).toEqual([4, 4, false]);
  });
});
