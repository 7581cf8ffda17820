/** Decides which disruption budgets a change has to do with: those of pods that are updated in place. */
import type { Pod } from "../../../api/kubernetes.ts";
import { budgetStanding, covers, type DisruptionBudget, idOf } from "../../rollout/disruption/disruption-budget.ts";

export interface AskedBudget {
  /** KIND NAMESPACE/NAME */
  readonly budget: string;
  /** how many of those pods it is about */
  readonly pods: number;
  /** how many of them may be down at once more than are now */
  readonly allowed: number;
  /** one sentence */
  readonly standing: string;
}

/** `pods`: updated in place. Budgets that allow least come first. */
export function askedBudgets(
  budgets: readonly DisruptionBudget[],
  pods: readonly Pod[],
): { readonly disruptionBudgets?: readonly AskedBudget[] } {
  const asked = budgets.flatMap((budget): readonly AskedBudget[] => {
    const own = pods.filter((pod) => covers(budget, pod)).length;
    if (own === 0) return [];
    return [{ budget: idOf(budget), pods: own, allowed: budget.allowed, standing: budgetStanding(budget) }];
  });
  return asked.length === 0 ? {} : { disruptionBudgets: asked.toSorted((a, b) => a.allowed - b.allowed) };
}
