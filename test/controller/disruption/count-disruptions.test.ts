/**
 * Tests that pods are counted in their disruption budgets before they are written to. A pod that no budget counts is
 * tested too.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import {
  countDisruptions,
  isForgotten,
  seeDisruptionBudgets,
} from "../../../shared/controller/rollout/count-disruptions.ts";
import { type Context, decideOn, observe, type Snapshot } from "../../../shared/controller/rollout/observe.ts";
import { newTally } from "../../../shared/controller/rollout/report.ts";
import { ledgerSubject, withReservations } from "../../../shared/core/ledger.ts";
import type { Decision } from "../../../shared/core/rollout/decide.ts";
import { narrow } from "../../../shared/core/rollout/narrow.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { wantedPods } from "../../../shared/core/rollout/rules/replacement/plan-replacement.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, DISRUPTION_BUDGETS, PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { faultyCluster } from "../faults.ts";
import {
  allReady,
  injectedPod,
  KRUISE_NAMESPACE,
  NAMESPACE,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "../fixture.ts";
import type { Budget } from "./disruption-controller.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());
afterEach(async () => {
  for (const { metadata } of (await cluster.list(DISRUPTION_BUDGETS)).items)
    await cluster.delete(DISRUPTION_BUDGETS, keyOf(metadata?.name ?? ""));
});

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
const readBudget = (name: string) => cluster.get<Budget>(DISRUPTION_BUDGETS, keyOf(name));
const ALL_AT_ONCE = { maxUnavailable: "100%" };

/** Returns a context whose one read of budgets stays valid, because no time passes. */
const contextOf = (through: Cluster): Context => ({
  cluster: { ...through },
  clock: { ...systemClock, now: () => 0 },
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: { ...DEFAULT_ROLLOUT_SETTINGS, RespectDisruptionBudgets: true },
  tally: newTally(),
  recorded: new Set(),
  endsAtMs: Number.POSITIVE_INFINITY,
});

/** Writes the status as the budget's controller does. */
async function say(name: string, disruptionsAllowed: number): Promise<void> {
  const body = { status: { observedGeneration: 1, disruptionsAllowed, currentHealthy: 2, desiredHealthy: 1 } };
  await cluster.patch(DISRUPTION_BUDGETS, keyOf(name), { type: "merge", body }, { subresource: "status" });
}

async function guard(name: string, matchLabels: Readonly<Record<string, string>>): Promise<void> {
  const spec = { selector: { matchLabels }, minAvailable: 1 };
  await cluster.create(DISRUPTION_BUDGETS, { metadata: keyOf(name), ...{ spec } } as KubernetesObject);
  await say(name, 2);
}

interface Wish {
  readonly context: Context;
  readonly snapshot: Snapshot;
  readonly decision: Decision;
}

/** Prepares two pods to update, and the budgets "a" and "b" with one pod each. */
async function wish(name: string, through = cluster): Promise<Wish> {
  await cluster.create(SIDECARSETS, sidecarSet(name, 1, ALL_AT_ONCE));
  for (const tier of ["a", "b"]) {
    const pod = injectedPod(name, `${name}-${tier}`);
    const labels = { ...pod.metadata?.labels, tier };
    await cluster.create<Pod>(PODS, { ...pod, metadata: { ...pod.metadata, labels } });
    await guard(tier, { app: name, tier });
  }
  await allReady(cluster, name);
  await release(cluster, name, 2, ALL_AT_ONCE);
  const context = contextOf(through);
  const snapshot = await observe(context, name);
  if (!snapshot) throw new Error(`there is no SidecarSet ${name}`);
  return { context, snapshot, decision: decideOn(context, snapshot, []) };
}

async function count({ context, snapshot, decision: wish }: Wish) {
  const wanted = wantedPods(wish.actions, new Set());
  const plan = withReservations([], wanted, ledgerSubject(snapshot.sidecarSet));
  const { uncounted, isOutdated } = await countDisruptions(context, snapshot, wish, plan);
  return { decision: narrow(wish, { uncounted }, new Set()), isOutdated };
}

const written = ({ actions }: Decision) =>
  actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : [])).toSorted();

const counted = async (budget: string) => Object.keys((await readBudget(budget)).status?.disruptedPods ?? {});

it("countDisruptions counts the pods on their budgets and puts the new budgets into the snapshot", async () => {
  const all = await wish("both");
  const result = await count(all);
  expect(result).toEqual({ decision: all.decision, isOutdated: false });
  expect(written(result.decision)).toEqual(["both-a", "both-b"]);
  expect([await counted("a"), await counted("b")]).toEqual([["both-a"], ["both-b"]]);
  const known = all.snapshot.disruptionBudgets;
  expect(known.map(({ allowed }) => allowed)).toEqual([1, 1]);
  await seeDisruptionBudgets(all.context, all.snapshot);
  expect(all.snapshot.disruptionBudgets).toEqual(known);
});

it("pods are not counted twice, and no budget is read again", async () => {
  const calls = faultyCluster(cluster, "unavailable", () => false);
  const all = await wish("twice", calls);
  await count(all);
  await seeDisruptionBudgets(all.context, all.snapshot);
  const before = calls.calls.length;
  expect(await count(all)).toEqual({ decision: all.decision, isOutdated: false });
  await seeDisruptionBudgets(all.context, all.snapshot);
  expect(calls.calls.slice(before)).toEqual([]);
});

it("a pod waits when its budget changed after it was read, and pods of other budgets are upgraded", async () => {
  const all = await wish("moved");
  await cluster.patch(DISRUPTION_BUDGETS, keyOf("a"), {
    type: "merge",
    body: { metadata: { labels: { new: "yes" } } },
  });
  const { decision, isOutdated } = await count(all);
  expect([written(decision), isOutdated]).toEqual([["moved-b"], true]);
  expect(decision.summary).toMatchObject({
    hold: "disruptionBudget",
    selected: 1,
    rules: {
      disruptionBudgets: {
        waiting: 1,
        full: ["PodDisruptionBudget shop/a was written to meanwhile"],
        names: ["PodDisruptionBudget shop/a"],
      },
    },
  });
  expect([await counted("a"), await counted("b")]).toEqual([[], ["moved-b"]]);
  await seeDisruptionBudgets(all.context, all.snapshot);
  const versions = await Promise.all(["a", "b"].map(readBudget));
  expect(all.snapshot.disruptionBudgets.map(({ resourceVersion }) => resourceVersion)).toEqual(
    versions.map(({ metadata }) => metadata?.resourceVersion),
  );
});

it("a pod waits when its budget allows no disruption now, and the decision is not outdated", async () => {
  const all = await wish("full");
  await say("a", 0);
  await seeDisruptionBudgets({ ...all.context, cluster: { ...cluster } }, all.snapshot);
  const { decision, isOutdated } = await count(all);
  expect([written(decision), isOutdated]).toEqual([["full-b"], false]);
});

it("a pod that two budgets cover waits although one of them counted it", async () => {
  await guard("wide", { app: "wide" });
  const all = await wish("wide");
  await say("a", 1);
  const { decision } = await count(all);
  expect(written(decision)).toEqual(["wide-b"]);
  // The test compares names, because the order of the list is not known.
  expect((await counted("wide")).toSorted()).toEqual(["wide-a", "wide-b"]);
});

it("a pod waits when the budget write got no answer, and the next round reads the budget again", async () => {
  const isStruck = (_: number, call: string) => call === "PATCH poddisruptionbudgets/status";
  const all = await wish("lost", faultyCluster(cluster, "lostAnswer", isStruck));
  const { decision, isOutdated } = await count(all);
  expect([written(decision), isOutdated]).toEqual([[], true]);
  await seeDisruptionBudgets(all.context, all.snapshot);
  expect(all.snapshot.disruptionBudgets.map(({ allowed }) => allowed)).toEqual([1, 1]);
});

it.each<[string, number, string]>([
  [
    "policy",
    403,
    " (if no policy or webhook refuses it: apply infra/rbac/optional/disruption-budgets.yaml, or switch the gate off)",
  ],
  ["busy", 429, ""],
  ["webhook", 503, ""],
])(
  "a budget whose write is refused holds its own pods and says why, and pods of other budgets are updated: %s",
  async (name, code, advice) => {
    const refusing: Cluster = {
      ...cluster,
      patch: (resource, key, ...call) =>
        resource === DISRUPTION_BUDGETS && key.name === "a"
          ? Promise.reject(new KubeError("no", { code, reason: "Refused", isOutcomeKnown: true }))
          : cluster.patch(resource, key, ...call),
    };
    const { decision, isOutdated } = await count(await wish(name, refusing));
    expect([written(decision), isOutdated]).toEqual([[`${name}-b`], false]);
    expect(decision.summary).toMatchObject({
      hold: "disruptionBudget",
      rules: {
        disruptionBudgets: { waiting: 1, full: [`PodDisruptionBudget shop/a could not be written: no${advice}`] },
      },
    });
  },
);

it.each<[string, boolean]>([
  ["2025-06-01T00:00:00Z", false],
  ["2025-06-01T00:01:00Z", false],
  ["2025-06-01T00:01:01Z", true],
  ["2025-05-31T23:59:00Z", false],
  ["2025-05-31T23:58:59Z", true],
  ["at some time", false],
])("isForgotten compares a count at midnight with the time %s and allows a minute of clock error", (now, isOver) => {
  expect(isForgotten({ disruption: { at: "2025-06-01T00:00:00Z", budgets: [] } }, now)).toBe(isOver);
});

it("isForgotten is false for a pod without disruption budgets", () => {
  expect(isForgotten({}, "2025-06-01T00:01:01Z")).toBe(false);
});
