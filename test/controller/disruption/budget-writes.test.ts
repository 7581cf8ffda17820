/** Tests a decision's writes to disruption budgets, and what the pass knows of the budgets afterwards. */
import { expect, it } from "vitest";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { countDisruptions } from "../../../shared/controller/rollout/count-disruptions.ts";
import type { Context, Snapshot } from "../../../shared/controller/rollout/observe.ts";
import type { PatchPod } from "../../../shared/controller/rollout/pod-patch.ts";
import type { Action } from "../../../shared/core/actions.ts";
import type { LedgerPlan } from "../../../shared/core/ledger.ts";
import type { Decision } from "../../../shared/core/rollout/decide.ts";
import {
  type BudgetKind,
  type DisruptionBudget,
  disruptionBudgetOf,
  idOf,
} from "../../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";
import type { EndedDisruption } from "../../../shared/core/rollout/rules/disruption-budgets/guard.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import type { Cluster, ObjectKey } from "../../../shared/kube/port.ts";
import { refusal } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";

const AT = "2026-01-01T00:00:00Z";

/** Returns a stored budget: one more pod may go down, and pod "back" counts as going down. */
function storedBudget(desiredAvailable: number, name = "web"): KubernetesObject {
  const counts = { disruptionsAllowed: 1, unavailableAllowed: 1, desiredAvailable };
  const going = { disruptedPods: { back: AT }, unavailablePods: { back: AT } };
  const metadata = { namespace: "shop", name, uid: name, resourceVersion: "1", generation: 1 };
  return { metadata, ...{ spec: {}, status: { observedGeneration: 1, ...counts, ...going } } };
}

function upgradeOf(name: string, budget: DisruptionBudget): Action {
  const pod = { namespace: "shop", name, uid: name, resourceVersion: "7" };
  const patch = { kind: "PatchPod", purpose: "upgrade", pod, annotations: {}, images: [] } as const;
  return { ...patch, isFirstAnnotation: false, usesBudget: true, disruption: { at: AT, budgets: [idOf(budget)] } };
}

/** Returns an API server that answers writes with `answer`. */
function stage(kind: BudgetKind, answer: KubernetesObject | Error) {
  const budget = disruptionBudgetOf(kind, storedBudget(1)) as DisruptionBudget;
  const bodies: unknown[] = [];
  const patch = async (...[, , { body }]: [unknown, unknown, { body: unknown }]) => {
    bodies.push(body);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const context = { cluster: { patch } as unknown as Cluster, clock: steppedClock().clock } as Context;
  const snapshot = { disruptionBudgets: [budget] } as unknown as Snapshot;
  const ended: readonly EndedDisruption[] = [{ budget: idOf(budget), pod: "back" }];
  const decision = { actions: [upgradeOf("a", budget)], ended } as unknown as Decision;
  const count = (granted?: readonly string[]) =>
    countDisruptions(context, snapshot, decision, granted && ({ granted: new Set(granted) } as unknown as LedgerPlan));
  return { snapshot, bodies, count };
}

it("without a pod to write, countDisruptions only removes pods that are ready again from a budget", async () => {
  const { bodies, count } = stage("PodDisruptionBudget", storedBudget(1));
  expect(await count()).toEqual({ uncounted: [], isOutdated: false });
  const metadata = { uid: "web", resourceVersion: "1" };
  expect(bodies).toEqual([{ metadata, status: { disruptedPods: { back: null } } }]);
});

it("a budget that no longer requires any available pod is dropped from the snapshot", async () => {
  const { snapshot, count } = stage("PodUnavailableBudget", storedBudget(0));
  expect(await count(["a"])).toEqual({ uncounted: [], isOutdated: false });
  expect(snapshot.disruptionBudgets).toEqual([]);
});

it("the snapshot gets the new state of a written budget and keeps the other budgets", async () => {
  const now = storedBudget(1);
  const { snapshot, count } = stage("PodDisruptionBudget", now);
  const [before] = snapshot.disruptionBudgets;
  const other = disruptionBudgetOf("PodDisruptionBudget", storedBudget(1, "other")) as DisruptionBudget;
  snapshot.disruptionBudgets = [other, ...snapshot.disruptionBudgets];
  await count(["a"]);
  expect(snapshot.disruptionBudgets).toEqual([other, disruptionBudgetOf("PodDisruptionBudget", now)]);
  expect(snapshot.disruptionBudgets[0]).toBe(other);
  expect(snapshot.disruptionBudgets[1]).not.toBe(before);
});

it("a forbidden budget write holds the budget's pods and names the missing role", async () => {
  const { count } = stage("PodDisruptionBudget", refusal(403, "Forbidden"));
  expect((await count(["a"])).uncounted).toMatchObject([
    {
      name: "a",
      why: expect.stringMatching(
        /^PodDisruptionBudget shop\/web could not be written: .*: apply infra\/rbac\/optional\/disruption-budgets\.yaml, or switch the gate off\)$/,
      ),
    },
  ]);
});

it.each([
  ["changes before each write", refusal(409, "Conflict"), "was written to meanwhile"],
  [
    "has a webhook that denies each write with 409",
    new KubeError('admission webhook "own.example.com" denied the request: no', { code: 409, reason: "Conflict" }),
    'could not be written: admission webhook "own.example.com" denied the request: no',
  ],
])(
  "a budget that %s is tried again at once three times in a pass, and then after the next read",
  async (_, answer, why) => {
    const { count } = stage("PodDisruptionBudget", answer);
    const outdated = [];
    for (let nth = 0; nth < 5; nth++) outdated.push((await count(["a"])).isOutdated);
    expect(outdated).toEqual([true, true, true, false, false]);
    expect((await count(["a"])).uncounted[0]).toMatchObject({ why: `PodDisruptionBudget shop/web ${why}` });
  },
);

it("a namespace that delays each budget write by 25 seconds costs a pass one write, and budgets of other namespaces still count", async () => {
  const { clock } = steppedClock();
  const names = Array.from({ length: 20 }, (_, nth) => `b${nth}`);
  const budgets = names.map((name, nth) => ({
    ...(disruptionBudgetOf("PodDisruptionBudget", storedBudget(1, name)) as DisruptionBudget),
    namespace: nth < 19 ? "greedy" : "shop",
  }));
  const written: string[] = [];
  const patch = async (_: unknown, { namespace, name }: ObjectKey) => {
    written.push(name);
    if (namespace === "greedy") await clock.sleep(25_000);
    return undefined;
  };
  const context = { cluster: { patch } as unknown as Cluster, clock } as Context;
  const snapshot = { disruptionBudgets: budgets } as unknown as Snapshot;
  const actions = budgets.map((budget) => {
    const action = upgradeOf(budget.name, budget) as PatchPod;
    return { ...action, pod: { ...action.pod, namespace: budget.namespace } };
  });
  const plan = { granted: new Set(names) } as unknown as LedgerPlan;
  const beganAtMs = clock.now();
  const { uncounted } = await countDisruptions(context, snapshot, { actions } as unknown as Decision, plan);
  expect(clock.now() - beganAtMs).toBe(25_000);
  expect(written).toContain("b19");
  expect(written.length).toBeLessThanOrEqual(5);
  expect(uncounted).toHaveLength(20 - written.length);
  expect(uncounted[0]?.why).toMatch(/ waits for the next round, because writes to its namespace are slow$/);
});
