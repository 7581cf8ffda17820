import { describe, expect, test } from "vitest";
import { writeOf } from "../../../shared/core/rollout/disruption/counted-pods.ts";
import { disruptionBudgetOf } from "../../../shared/core/rollout/disruption/disruption-budget.ts";
import { budgetOf } from "./fixture.ts";

const [EARLIER, NOW] = ["2025-06-01T00:00:00Z", "2025-06-01T00:10:00Z"];
const ID = "PodDisruptionBudget default/one";
const pod = (name: string, budgets: readonly string[] = [ID]) => ({ name, disruption: { at: NOW, budgets } });
const metadata = { uid: "uid-one", resourceVersion: "5" };

describe("what is written to a budget", () => {
  test("is one less for each pod, on condition that it was not written to meanwhile", () => {
    const budget = budgetOf({ allowed: 3 });
    expect(writeOf(budget, [pod("x"), pod("y"), pod("z", ["other"])], [])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptionsAllowed: 1, disruptedPods: { x: NOW, y: NOW } } },
    });
  });

  test("is the new time alone for what is counted already", () => {
    const budget = budgetOf({ allowed: 0, disrupted: { x: EARLIER } });
    expect(writeOf(budget, [pod("x")], [])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptedPods: { x: NOW } } },
    });
  });

  test("is nothing where it says so already, or it is about no such pod", () => {
    expect(writeOf(budgetOf({ disrupted: { x: NOW } }), [pod("x")], [])).toBe("nothing");
    expect(writeOf(budgetOf(), [pod("x", ["other"])], [{ budget: "other", pod: "y" }])).toBe("nothing");
  });

  test("is nothing at all where fewer are allowed than are wanted", () => {
    expect(writeOf(budgetOf({ allowed: 1 }), [pod("x"), pod("y")], [{ budget: ID, pod: "z" }])).toBe("full");
  });

  test("takes out what is back, and does not say how many are allowed then", () => {
    const budget = budgetOf({ allowed: 0, disrupted: { x: EARLIER } });
    expect(writeOf(budget, [], [{ budget: ID, pod: "x" }])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptedPods: { x: null } } },
    });
  });

  test("keeps a pod that goes down again", () => {
    const budget = budgetOf({ disrupted: { x: EARLIER } });
    expect(writeOf(budget, [pod("x")], [{ budget: ID, pod: "x" }])).toStrictEqual({
      budget,
      body: { metadata, status: { disruptedPods: { x: NOW } } },
    });
  });

  test("has OpenKruise's names in its budgets", () => {
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
