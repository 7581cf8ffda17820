/** Tests the forecast of `plan` and `diff` about disruption budgets. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { diffSidecarSets } from "../../../shared/core/inspect/diff/diff.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import type { DisruptionBudget } from "../../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";
import { CONTEXT, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";
import { budgetOf } from "./fixture.ts";

const a = { app: "a" };
const b = { app: "b" };
const labelled = (labels: Readonly<Record<string, string>>, count: number) =>
  Array.from({ length: count }, (_, index) => podOf({ name: `${labels["app"]}${index}`, labels }));
const SIDECAR_SET = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: "100%" } });
const budgetOfA = (facts: Parameters<typeof budgetOf>[0]) =>
  budgetOf({ name: "a", selector: { matchLabels: a }, ...facts });

function planned(pods: readonly Pod[], disruptionBudgets: readonly DisruptionBudget[]) {
  const observation = { ...UNTOUCHED, sidecarSet: SIDECAR_SET, pods, revisions: [], disruptionBudgets };
  return planRollout(observation, { ...CONTEXT, now: "2025-06-01T00:10:00Z", readyAfterSeconds: 5 });
}
const stepsOf = ({ steps }: ReturnType<typeof planned>) => steps.map(({ atSeconds, pods }) => [atSeconds, pods.length]);

describe("planRollout with disruption budgets:", () => {
  it("a plan updates as many pods per step as the budget allows and names the budget that holds the others", () => {
    const plan = planned(labelled(a, 4), [budgetOfA({ allowed: 2, healthy: 4, desired: 2 })]);
    expect(stepsOf(plan)).toEqual([
      [0, 2],
      [5, 2],
    ]);
    expect(plan.steps.map(({ held }) => held)).toEqual([
      { pods: 2, budgets: ["PodDisruptionBudget default/a"] },
      undefined,
    ]);
    expect(plan.isComplete).toBe(true);
  });

  it("a plan names the budget that holds the remaining pods while other pods are updated", () => {
    const plan = planned([...labelled(a, 2), ...labelled(b, 3)], [budgetOfA({ allowed: 0, healthy: 2, desired: 2 })]);
    expect(stepsOf(plan)).toEqual([[0, 3]]);
    expect(plan.isComplete).toBe(false);
    expect(plan.after).toMatchObject({
      hold: "disruptionBudget",
      rules: {
        disruptionBudgets: {
          waiting: 2,
          full: ["PodDisruptionBudget default/a allows 0 more down: 2 healthy of 2 that have to be"],
          names: ["PodDisruptionBudget default/a"],
        },
      },
    });
  });

  it("a plan uses an allowed disruption again when the pod that used it is ready", () => {
    const down = podOf({ name: "down", labels: a, isReady: false });
    const plan = planned([down, ...labelled(a, 2)], [budgetOfA({ allowed: 0, healthy: 2, desired: 2 })]);
    expect(stepsOf(plan)).toEqual([
      [0, 1],
      [5, 1],
      [10, 1],
    ]);
    expect(plan.steps[0]?.pods).toMatchObject([{ name: "down" }]);
    expect(plan.isComplete).toBe(true);
  });

  it("a plan has no steps while the budget's controller has not seen its spec", () => {
    const plan = planned(labelled(a, 2), [budgetOfA({ generation: 2, observedGeneration: 1 })]);
    expect([plan.steps, plan.after.hold]).toEqual([[], "disruptionBudget"]);
  });
});

it("diffSidecarSets names the budgets of pods that are updated in place, and full budgets come first", () => {
  const pods = [...labelled(a, 2), ...labelled(b, 1), podOf({ name: "c0", labels: a, withoutImage: "else" })];
  const open = budgetOf({ name: "b", selector: { matchLabels: b }, allowed: 1, healthy: 1, desired: 0 });
  const given = { ...UNTOUCHED, before: SIDECAR_SET, after: SIDECAR_SET, pods, revisions: [], ...CONTEXT };
  const budgets = [
    open,
    budgetOfA({ allowed: 0 }),
    budgetOf({ name: "none", selector: { matchLabels: { app: "c" } } }),
  ];
  expect(diffSidecarSets({ ...given, disruptionBudgets: budgets }).disruptionBudgets).toEqual([
    {
      budget: "PodDisruptionBudget default/a",
      pods: 2,
      allowed: 0,
      standing: "PodDisruptionBudget default/a allows 0 more down: 3 healthy of 2 that have to be",
    },
    {
      budget: "PodDisruptionBudget default/b",
      pods: 1,
      allowed: 1,
      standing: "PodDisruptionBudget default/b allows 1 more down: 1 healthy of 0 that have to be",
    },
  ]);
  expect(diffSidecarSets({ ...given, disruptionBudgets: [] })).not.toHaveProperty("disruptionBudgets");
});
