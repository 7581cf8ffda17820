/** Tests what a decision writes to disruption budgets, and what the pass knows about them afterwards. */
import { expect, it } from "vitest";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { countDisruptions } from "../../../shared/controller/rollout/count-disruptions.ts";
import type { Context, Snapshot } from "../../../shared/controller/rollout/observe.ts";
import type { Action } from "../../../shared/core/actions.ts";
import type { LedgerPlan } from "../../../shared/core/ledger.ts";
import type { Decision } from "../../../shared/core/rollout/decide.ts";
import type { EndedDisruption } from "../../../shared/core/rollout/disruption/counted-pods.ts";
import {
  type BudgetKind,
  type DisruptionBudget,
  disruptionBudgetOf,
  idOf,
} from "../../../shared/core/rollout/disruption/disruption-budget.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { refusal } from "../bare-cluster.ts";

const AT = "2026-01-01T00:00:00Z";

/** As it is stored: one more may go down, and it counts pod "back" as going down. */
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

/** Where the API server answers a write so. */
function stage(kind: BudgetKind, answer: KubernetesObject | Error) {
  const budget = disruptionBudgetOf(kind, storedBudget(1)) as DisruptionBudget;
  const bodies: unknown[] = [];
  const patch = async (...[, , { body }]: [unknown, unknown, { body: unknown }]) => {
    bodies.push(body);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const context = { cluster: { patch } as unknown as Cluster } as Context;
  const snapshot = { disruptionBudgets: [budget] } as unknown as Snapshot;
  const ended: readonly EndedDisruption[] = [{ budget: idOf(budget), pod: "back" }];
  const decision = { actions: [upgradeOf("a", budget)], ended } as unknown as Decision;
  const count = (granted?: readonly string[]) =>
    countDisruptions(context, snapshot, decision, granted && ({ granted: new Set(granted) } as unknown as LedgerPlan));
  return { snapshot, bodies, count };
}

it("when no pod is to be written, countDisruptions only removes pods that are ready again from a budget", async () => {
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

it("the error of a forbidden budget write names the missing role", async () => {
  const forbidden = refusal(403, "Forbidden");
  const { count } = stage("PodDisruptionBudget", forbidden);
  await expect(count(["a"])).rejects.toMatchObject({
    message:
      "poddisruptionbudgets/status may not be patched, which gate RespectDisruptionBudgets needs: apply infra/rbac/optional/disruption-budgets.yaml, or switch the gate off",
    cause: forbidden,
  });
});
