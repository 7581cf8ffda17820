/** Decides what is left of a decision where disruption budgets did not count pods that it wants to restart. */
import type { Action } from "../../actions.ts";
import type { Decision } from "../decide.ts";
import { BUDGETS_NAMED, NO_BUDGETS } from "./guard.ts";

/** `pods`: not to be written to now. */
export function withoutDisruptions(
  decision: Decision,
  pods: readonly { readonly uid: string; readonly disruption: { readonly budgets: readonly string[] } }[],
): Decision {
  const withheld = new Set(pods.map(({ uid }) => uid));
  const isWithheld = (action: Action) =>
    (action.kind === "PatchPod" || action.kind === "PatchPodCondition") && withheld.has(action.pod.uid);
  const { waiting, full, names } = decision.summary.disruptionBudgets ?? NO_BUDGETS;
  const written = [...new Set(pods.flatMap(({ disruption }) => disruption.budgets))];
  const changed = written
    .slice(0, Math.max(0, BUDGETS_NAMED - full.length))
    .map((id) => `${id} was written to meanwhile`);
  return {
    ...decision,
    actions: decision.actions.filter((action) => !isWithheld(action)),
    summary: {
      ...decision.summary,
      hold: "disruptionBudget",
      selected: Math.max(0, decision.summary.selected - withheld.size),
      disruptionBudgets: {
        waiting: waiting + withheld.size,
        full: [...full, ...changed],
        names: [...new Set([...names, ...written])],
      },
    },
  };
}
