/** The book's words about owners whose budget is used. */
import { counted } from "../../../../go/counted.ts";
import { type HoldWords, isStuckBy } from "../../hold-words.ts";
import type { RuleFacts } from "../../summary.ts";

const NO_OWNERS: RuleFacts["ownerBudget"] = { waiting: 0, full: [] };

export const OWNER_BUDGET_WORDS: HoldWords = {
  applies: ({ rules: { ownerBudget } }) => ownerBudget !== undefined,
  cause: "OwnerBudgetUsed",
  severity: "wait",
  reason: "MaxUnavailablePerOwner",
  verdict: "Blocked",
  blocked: {
    reason: "MaxUnavailablePerOwner",
    text: (held, failing) =>
      isStuckBy(held, "ownerBudget", failing)
        ? `pods wait for others of their owners: ${held.rules.ownerBudget?.full.join("; ")}`
        : undefined,
  },
  clause: ({ rules: { ownerBudget = NO_OWNERS } }) =>
    `${counted(ownerBudget.waiting, "pod waits", "pods wait")} for others of their owners: ${ownerBudget.full.join("; ")}`,
  sentence: ({ rules: { ownerBudget = NO_OWNERS } }) =>
    `${counted(ownerBudget.waiting, "pod waits", "pods wait")} for others of the same owner: ${ownerBudget.full.join("; ")}`,
  title: ({ rules: { ownerBudget = NO_OWNERS } }) =>
    `${counted(ownerBudget.waiting, "pod waits", "pods wait")} for others of the same owner`,
};
