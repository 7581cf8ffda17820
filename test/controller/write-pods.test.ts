/** Tests writes to pods that another pass or the API server refuses. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DRAIN_ANNOTATION, FENCE_ANNOTATION, FENCE_CONDITION, SERVING, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import { timestamp } from "../../shared/controller/loop/clock.ts";
import { fencePod } from "../../shared/controller/rollout/fence-pod.ts";
import { decideOn, observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { writePods } from "../../shared/controller/rollout/write-pods.ts";
import { ledgerSubject, type Reservation, withReservations } from "../../shared/core/ledger.ts";
import type { Decision } from "../../shared/core/rollout/decide.ts";
import { wantedPods } from "../../shared/core/rollout/rules/replacement/plan-replacement.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout, running } from "./bare-rollout.ts";
import { NAMESPACE } from "./fixture.ts";

function stateOf({ metadata }: Pod) {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata ?? {};
  return { namespace, name, uid, resourceVersion };
}

/** Prepares a pod of version 1, and releases version 2. */
function stage(refuse?: Refuse) {
  const on = bareRollout("set", refuse);
  on.deploy(1);
  on.release(2);
  const { context } = on;
  const look = async (): Promise<Snapshot> => {
    const snapshot = await observe(context, "set");
    if (!snapshot) throw new Error("there is no SidecarSet");
    return snapshot;
  };
  const planOf = ({ actions }: Decision, { sidecarSet }: Snapshot) =>
    withReservations([], wantedPods(actions, new Set()), ledgerSubject(sidecarSet));
  /** Makes all writes of a round. */
  const write = (snapshot: Snapshot) => {
    const decision = decideOn(context, snapshot, []);
    return writePods(context, snapshot, decision, planOf(decision, snapshot));
  };
  return { ...on, look, planOf, write, tally: context.tally };
}

const NOTHING = { done: new Set(), refused: new Map(), notEvicted: new Set(), isOutdated: false };
const patchOf = (calls: readonly (readonly [number, string])[]) =>
  calls.map(([, call]) => call).filter((call) => call.startsWith("PATCH pods"));

it("writePods upgrades a pod and counts it", async () => {
  const { look, write, versions, tally } = stage();
  expect(await write(await look())).toEqual({ ...NOTHING, done: new Set(["uid-set-0"]) });
  expect(tally).toEqual({ ...newTally(), batches: 1, upgraded: 1 });
  expect(versions()).toBe("2");
});

it.each<[string, number, boolean, readonly string[]]>([
  ["refused by a policy", 422, false, ["no"]],
  ["refused because another writer changed the pod", 422, true, []],
  ["refused by a webhook that says there is no such pod", 404, false, ["no"]],
])(
  "a pod patch is reported and delayed only if no other writer changed the pod: %s",
  async (_, code, isChanged, problems) => {
    const on = stage((call) => {
      if (call !== "PATCH pods") return undefined;
      if (isChanged) on.settle(0);
      return refusal(code, "no");
    });
    const snapshot = await on.look();
    const refused = new Map(problems.map((message) => ["uid-set-0", message]));
    expect(await on.write(snapshot)).toEqual({ ...NOTHING, refused });
    expect(on.tally).toEqual({
      ...newTally(),
      batches: 1,
      conflicts: code === 404 ? 0 : 1,
      problems: problems.map((message) => ({ ...on.keyOf(0), message })),
    });
    // The next round leaves out the refused pod.
    const { actions } = decideOn(on.context, snapshot, []);
    expect(actions.filter(({ kind }) => kind === "PatchPod")).toHaveLength(problems.length > 0 ? 0 : 1);
  },
);

it.each([409, 500])(
  "a pod patch is reported and delayed after the third answer %i in a row for the same pod",
  async (code) => {
    const on = stage((call) => (call === "PATCH pods" ? refusal(code, "no") : undefined));
    const snapshot = await on.look();
    const isPlanned = () => decideOn(on.context, snapshot, []).actions.some(({ kind }) => kind === "PatchPod");
    for (const problems of [0, 0, 1]) {
      expect(isPlanned()).toBe(true);
      await on.write(snapshot);
      expect(on.tally.problems).toHaveLength(problems);
    }
    expect(isPlanned()).toBe(false);
  },
);

it("a forbidden pod patch is reported with its reason and not retried at once", async () => {
  const on = stage((call) => (call === "PATCH pods" ? refusal(403, "no") : undefined));
  const { look, write, tally, calls, context } = on;
  const snapshot = await look();
  expect(await write(snapshot)).toEqual({ ...NOTHING, refused: new Map([["uid-set-0", "no"]]) });
  expect(decideOn(context, snapshot, []).summary).toMatchObject({ hold: "refused", selected: 0 });
  expect(patchOf(calls)).toEqual(["PATCH pods refused"]);
  expect(tally).toMatchObject({ batches: 1, conflicts: 0, problems: [{ message: "no" }] });
});

it("a pod that is gone at its patch leaves the view without a problem", async () => {
  const { look, write, tally, server, keyOf } = stage();
  const snapshot = await look();
  server.remove("test", PODS, { metadata: keyOf(0) });
  expect(await write(snapshot)).toEqual(NOTHING);
  expect(tally).toEqual({ ...newTally(), batches: 1 });
  expect(snapshot.observed.view.versionOf("uid-set-0")).toBeNull();
});

it.each([
  [60_000, 1],
  [61_000, 0],
])("a patch that disruption budgets counted %i ms ago is sent %i times", async (agoMs, times) => {
  const { look, planOf, context, calls, clock, beginAt, versions } = stage();
  const snapshot = await look();
  const disruption = { at: timestamp(clock), budgets: [] };
  const decision = decideOn(context, snapshot, []);
  const actions = decision.actions.map((action) => (action.kind === "PatchPod" ? { ...action, disruption } : action));
  beginAt(clock.epochMs() + agoMs);
  await writePods(context, snapshot, { ...decision, actions }, planOf(decision, snapshot));
  expect(calls.filter(([, call]) => call === "PATCH pods")).toHaveLength(times);
  expect(versions()).toBe(times === 1 ? "2" : "1");
});

it("a reserved pod that is no longer selected is fenced and does not join the view", async () => {
  const { look, context, server, tally } = stage();
  const elsewhere = { namespace: NAMESPACE, name: "elsewhere" };
  const metadata = { ...elsewhere, uid: "uid", labels: { app: "other" } };
  server.put("test", PODS, running(newPod(metadata, { containers: [{ name: "main", image: "nginx:1" }] })));
  const readElsewhere = () => server.peek(PODS, elsewhere)?.metadata;
  const { resourceVersion = "" } = readElsewhere() ?? {};
  const snapshot = await look();
  const decision = { ...decideOn(context, snapshot, []), actions: [] };
  const reservation = { ...elsewhere, uid: "uid", resourceVersion, generation: 1, revision: "hash1" };
  const { ledger } = snapshot.stored;
  const plan = { ledger, granted: new Set<string>(), fenced: [reservation] };
  expect(await writePods(context, snapshot, decision, plan)).toEqual(NOTHING);
  expect(readElsewhere()?.annotations).toEqual({ [FENCE_ANNOTATION]: resourceVersion });
  expect(snapshot.observed.view.versionOf("uid")).toBe(readElsewhere()?.resourceVersion);
  expect([...snapshot.observed.view.pods].map((pod) => pod.metadata?.name)).toEqual(["set-0"]);
  expect(tally).toEqual({ ...newTally(), fenced: 1 });
});

describe("fences:", () => {
  const lost = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
  const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 });

  /** Writes the fences of a pod or of `reserved`, and nothing else. */
  async function fencing(refuse?: Refuse, reserved: Partial<Reservation> = {}) {
    const on = stage(refuse);
    const snapshot = await on.look();
    const { uid = "", resourceVersion = "" } = on.readPod(0).metadata ?? {};
    const reservation = { ...on.keyOf(0), uid, resourceVersion, generation: 1, revision: "hash1", ...reserved };
    const decision = { ...decideOn(on.context, snapshot, []), actions: [] };
    const plan = { ledger: snapshot.stored.ledger, granted: new Set<string>(), fenced: [reservation] };
    const fence = () => writePods(on.context, snapshot, decision, plan);
    const versionOf = () => snapshot.observed.view.versionOf(reservation.uid);
    return { ...on, fence, versionOf, sent: () => patchOf(on.calls) };
  }

  it("writePods writes no fence to a reserved workload", async () => {
    const { fence, sent } = await fencing(undefined, { workload: "Deployment", uid: "web" });
    await fence();
    expect(sent()).toEqual([]);
  });

  it("writePods writes no fence to a pod that is gone", async () => {
    const { fence, sent, versionOf, tally } = await fencing(undefined, { name: "gone", uid: "gone" });
    expect(await fence()).toEqual(NOTHING);
    expect([sent(), versionOf(), tally.fenced]).toEqual([[], null, 0]);
  });

  it("a fence on a pod that is deleted in the meantime is no problem", async () => {
    const { fence, versionOf, tally, server, keyOf } = await fencing(undefined);
    server.remove("test", PODS, { metadata: keyOf(0) });
    expect(await fence()).toEqual(NOTHING);
    expect([versionOf(), tally.fenced, tally.problems]).toEqual([null, 0, []]);
  });

  it("a fence that is refused in the annotations and in the status is reported and tried again after a second", async () => {
    const { fence, sent, tally, clock } = await fencing((call) =>
      call.startsWith("PATCH pods") ? refusal(403, "no") : undefined,
    );
    await fence();
    await fence();
    expect([sent(), tally.fenced]).toEqual([["PATCH pods refused", "PATCH pods/status refused"], 0]);
    expect(tally.problems).toMatchObject([{ name: "set-0", message: "no" }]);
    await clock.sleep(1_000);
    await fence();
    expect(sent()).toHaveLength(4);
  });

  it.each([
    ["by a policy about pods", 403],
    ["because the annotations are too long", 422],
  ])("a fence that is refused %s is written to the status instead, every time", async (_, code) => {
    const on = await fencing((call) => (call === "PATCH pods" ? refusal(code, "no") : undefined));
    const { conditions = [] } = on.readPod(0).status ?? {};
    const before = on.readPod(0).metadata?.resourceVersion;
    await on.fence();
    expect([on.tally.fenced, on.tally.problems]).toEqual([1, []]);
    expect(on.versionOf()).toBe(on.readPod(0).metadata?.resourceVersion);
    const fenced = { type: FENCE_CONDITION, status: "True", message: before };
    expect(on.readPod(0).status?.conditions).toEqual([...conditions, fenced]);
    const now = on.readPod(0).metadata?.resourceVersion;
    const again = await fencePod(on.context.cluster, stateOf(on.readPod(0)));
    expect(again.kind).toBe("done");
    expect(on.readPod(0).status?.conditions).toEqual([...conditions, { ...fenced, message: now }]);
  });

  it("a fence waits as long as a busy API server asks and is then sent again", async () => {
    const { fence, sent, tally, clock } = await fencing((call, nth) =>
      call === "PATCH pods" && nth <= 2 ? busy : undefined,
    );
    for (const [atMs, fenced] of [
      [1_000, 0],
      [2_000, 0],
      [2_000, 1],
    ]) {
      await fence();
      expect([clock.now(), tally.fenced]).toEqual([atMs, fenced]);
    }
    expect([sent().length, tally.problems]).toEqual([3, []]);
  });

  it.each([
    ["because others wrote to the pod", refusal(409, "Conflict")],
    ["without an answer", lost],
  ])("a fence that fails %s does not count and is no problem", async (_, error) => {
    const on = await fencing((call) => {
      if (call !== "PATCH pods") return undefined;
      on.settle(0);
      return error;
    });
    expect(await on.fence()).toEqual(NOTHING);
    expect([on.tally.fenced, on.tally.conflicts, on.tally.problems]).toEqual([0, 1, []]);
    expect(on.versionOf()).toBe(on.readPod(0).metadata?.resourceVersion);
  });
});

it("a patch without an answer counts as not done when its pod is gone", async () => {
  const on = stage((call) => {
    if (call !== "PATCH pods") return undefined;
    on.server.remove("test", PODS, on.readPod(0));
    return new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
  });
  expect(await on.write(await on.look())).toEqual(NOTHING);
  expect([on.tally.upgraded, on.tally.conflicts]).toEqual([0, 1]);
});

it("the status is written while a batch waits for a busy API server", async () => {
  const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 3 });
  const { context, look, write, calls, readSet } = stage((call, nth) =>
    call === "PATCH pods" && nth === 1 ? busy : undefined,
  );
  await write(await look());
  expect(context.tally.upgraded).toBe(1);
  expect(calls.filter(([, call]) => call === "PATCH sidecarsets/status")).toEqual([
    [3_000, "PATCH sidecarsets/status"],
  ]);
  expect(readSet().status?.matchedPods).toBe(1);
});

it("a batch ends when a pass sees that the SidecarSet has changed", async () => {
  const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 2 });
  const { context, look, write, release, plan, calls, versions } = stage((call) =>
    call === "PATCH pods" ? busy : undefined,
  );
  const snapshot = await look();
  plan(1_000, () => release(3));
  expect(await write(snapshot)).toEqual({ ...NOTHING, isOutdated: true });
  // The patch is read back after two seconds, while it is sent again.
  expect(calls.filter(([, call]) => call === "PATCH pods refused").map(([atMs]) => atMs)).toEqual([0, 2_000]);
  expect([versions(), context.tally.upgraded]).toEqual(["1", 0]);
});

it("the time of a drain starts at its own write, even if earlier writes took long", async () => {
  const on = bareRollout("set");
  on.deploy(40, { maxUnavailable: 40 });
  on.release(2, { maxUnavailable: 40 });
  const { metadata, ...set } = on.readSet();
  const annotations = { ...metadata?.annotations, [DRAIN_ANNOTATION]: "20s" };
  on.server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, annotations } });
  for (let index = 0; index < 40; index++) {
    const { metadata: own, ...pod } = on.readPod(index);
    on.server.put("test", PODS, { ...pod, metadata: { ...own, labels: { ...own?.labels, [TRAFFIC_LABEL]: SERVING } } });
  }
  const written: (readonly [string, string])[] = [];
  const cluster: Cluster = {
    ...on.cluster,
    patch: async (resource, key, patch, options) => {
      const [, since] = /"since\W+([^"\\]+)/.exec(JSON.stringify(patch)) ?? [];
      if (resource === PODS && since) written.push([timestamp(on.clock), since]);
      await on.clock.sleep(2_000);
      return await on.cluster.patch(resource, key, patch, options);
    },
  };
  const context = { ...on.context, cluster };
  const snapshot = await observe(context, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const decision = decideOn(context, snapshot, []);
  const plan = withReservations([], wantedPods(decision.actions, new Set()), ledgerSubject(snapshot.sidecarSet));
  const granted = new Set(decision.actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.uid] : [])));
  await writePods(context, snapshot, decision, { ...plan, granted });
  expect(written).toHaveLength(40);
  expect(new Set(written.map(([at]) => at)).size).toBeGreaterThan(2);
  for (const [at, since] of written) expect(since).toBe(at);
});
