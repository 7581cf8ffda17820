import { describe, expect, test } from "vitest";
import { disruptionBudgetOf } from "../../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";
import { writeOf } from "../../../shared/core/rollout/rules/disruption-budgets/guard.ts";
import { budgetOf } from "./fixture.ts";

const [EARLIER, NOW] = ["2025-06-01T00:00:00Z", "2025-06-01T00:10:00Z"];
const ID = "PodDisruptionBudget default/one";
const pod = (name: string, budgets: readonly string[] = [ID]) => ({ name, disruption: { at: NOW, budgets } });
const metadata = { uid: "uid-one", resourceVersion: "5" };

describe("writeOf, which makes the patch of a disruption budget:", () => {
  test("the patch reduces the allowed disruptions by each pod and has the resourceVersion of the budget", () => {
    const budget = budgetOf({ allowed: 3 });
    expect(writeOf(budget, [pod("x"), pod("y"), pod("z", ["other"])], [])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptionsAllowed: 1, disruptedPods: { x: NOW, y: NOW } } },
    });
  });

  test("the patch has only the new time of a pod that the budget counts already", () => {
    const budget = budgetOf({ allowed: 0, disrupted: { x: EARLIER } });
    expect(writeOf(budget, [pod("x")], [])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptedPods: { x: NOW } } },
    });
  });

  test("there is no patch if the budget has the same time already or selects no such pod", () => {
    expect(writeOf(budgetOf({ disrupted: { x: NOW } }), [pod("x")], [])).toBe("nothing");
    expect(writeOf(budgetOf(), [pod("x", ["other"])], [{ budget: "other", pod: "y" }])).toBe("nothing");
  });

  test("there is no patch if the budget allows fewer disruptions than wanted", () => {
    expect(writeOf(budgetOf({ allowed: 1 }), [pod("x"), pod("y")], [{ budget: ID, pod: "z" }])).toBe("full");
  });

  test("the patch removes a pod that is ready again and does not set the allowed disruptions", () => {
    const budget = budgetOf({ allowed: 0, disrupted: { x: EARLIER } });
    expect(writeOf(budget, [], [{ budget: ID, pod: "x" }])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptedPods: { x: null } } },
    });
  });

  test("the patch keeps a pod that goes down again", () => {
    const budget = budgetOf({ disrupted: { x: EARLIER } });
    expect(writeOf(budget, [pod("x")], [{ budget: ID, pod: "x" }])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptedPods: { x: NOW } } },
    });
  });

  test("the patch of a PodUnavailableBudget has OpenKruise's field names", () => {
    const status = { observedGeneration: 1, unavailableAllowed: 1, desiredAvailable: 1 };
    const budget = disruptionBudgetOf("PodUnavailableBudget", {
      metadata: { ...metadata, namespace: "default", name: "one", generation: 1 },
      ...{ spec: { selector: {} }, status },
    });
    if (!budget) throw new Error("it is none");
    expect(writeOf(budget, [pod("x", ["PodUnavailableBudget default/one"])], [])).toStrictEqual({
      budget,
      body: { metadata, status: { unavailableAllowed: 0, unavailablePods: { x: NOW } } },
    });
  });
});
