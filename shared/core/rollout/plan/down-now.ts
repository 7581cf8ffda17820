/** Decides how many pods are down at a moment of a plan: those that maxUnavailable counts, and all that there are. */
import { countOf } from "../../../go/sequence.ts";
import { usedBudget } from "../select/budget.ts";
import { type Observed, sceneOf } from "../select/observed-states.ts";
import { NOTHING_RESERVED } from "../select/reserved.ts";

export interface DownNow {
  readonly counted: number;
  readonly all: number;
}

export function downNow(observed: Observed, context: Parameters<typeof sceneOf>[1]): DownNow {
  const { states, budgetUse } = sceneOf({ ...observed, reserved: NOTHING_RESERVED }, context);
  return {
    counted: usedBudget(states, budgetUse),
    all: countOf(states, ({ isConsistent, isReady }) => !(isConsistent && isReady)),
  };
}
