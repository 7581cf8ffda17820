/** The book's words about disruption budgets. */
import { counted } from "../../../../go/counted.ts";
import { type HoldWords, isStuckBy } from "../../hold-words.ts";
import { disruptionText, NO_BUDGETS } from "./guard.ts";

export const DISRUPTION_BUDGET_WORDS: HoldWords = {
  applies: ({ rules: { disruptionBudgets } }) => disruptionBudgets !== undefined,
  cause: "HeldByDisruptionBudget",
  severity: "wait",
  reason: "HeldByDisruptionBudget",
  verdict: "Blocked",
  blocked: {
    reason: "HeldByDisruptionBudget",
    text: (held, failing) =>
      isStuckBy(held, "disruptionBudget", failing)
        ? disruptionText(held.rules.disruptionBudgets ?? NO_BUDGETS)
        : undefined,
  },
  clause: ({ rules: { disruptionBudgets = NO_BUDGETS } }) => disruptionText(disruptionBudgets),
  title: ({ rules: { disruptionBudgets = NO_BUDGETS } }) =>
    `${counted(disruptionBudgets.waiting, "pod waits", "pods wait")} for disruption budgets`,
};
