/** Tests the lines of a dry run about disruption budgets. */
import { expect, it } from "vitest";
import { disruptionSteps } from "../../shared/controller/rollout/dry-run.ts";
import type { Action } from "../../shared/core/actions.ts";
import type { Decision } from "../../shared/core/rollout/decide.ts";

const [WEB, ALL] = ["PodDisruptionBudget shop/web", "PodDisruptionBudget shop/all"] as const;

function upgradeOf(name: string, ...budgets: readonly string[]): Action {
  const pod = { namespace: "shop", name, uid: `uid-${name}`, resourceVersion: "7" };
  const patch = { kind: "PatchPod", purpose: "upgrade", pod, annotations: {}, images: [] } as const;
  const disruption = budgets.length > 0 ? { disruption: { at: "2026-01-01T00:00:00Z", budgets } } : {};
  return { ...patch, isFirstAnnotation: false, usesBudget: true, ...disruption };
}

const stepsOf = (actions: readonly Action[], granted: readonly string[], disruptionBudgets?: object) =>
  disruptionSteps({ actions, summary: { rules: { disruptionBudgets } } } as unknown as Decision, new Set(granted));

it("disruptionSteps names each budget with the pods that it would count, and omits pods without a reservation", () => {
  const actions = [upgradeOf("a", WEB, ALL), upgradeOf("b", ALL), upgradeOf("c", ALL), upgradeOf("d")];
  expect(stepsOf(actions, ["uid-a", "uid-b", "uid-d"])).toEqual([
    `have ${WEB} count a as going down`,
    `have ${ALL} count a, b as going down`,
  ]);
});

it("disruptionSteps names the budgets that make pods wait", () => {
  const waiting = { waiting: 2, full: ["shop/web allows none"], names: [WEB] };
  expect(stepsOf([], [], waiting)).toEqual([
    "leave pods as they are: 2 pods wait for disruption budgets: shop/web allows none",
  ]);
});
