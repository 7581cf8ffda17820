/** Decides how many more pods may be given a release of which nobody knows yet whether it works, where it is to stop if it does not. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf, type Sequence } from "../../../go/sequence.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { sumOf } from "../replace/missing-pods.ts";
import type { BudgetUse } from "../select/budget.ts";
import { mayTestify } from "./witnesses.ts";

/** As many are on their way at once at most, or one more than may fail, if that is more. */
const MOST_ON_THEIR_WAY = 100;

/**
 * A pod that was given the release and is not ready with it yet may still fail; so may each that is reserved, or was
 * evicted and has no successor. A pod leaves this count only when it was seen to be back, so that no batch follows another
 * unseen, however large the budget is. A pod that was not ready before has no say, and holds up no other.
 */
export function haltRoom(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  { rules: { replacement } }: Pick<BudgetUse, "rules">,
): number {
  const { haltOn } = steeringOf(sidecarSet);
  if (haltOn === undefined) return Number.POSITIVE_INFINITY;
  const threshold = haltOn.isPercent ? 0 : haltOn.amount;
  const isOnItsWay = (state: PodState) =>
    state.isReservedNow === true || (state.isUpdated && !isBack(state) && mayTestify(state, sidecarSet));
  return Math.max(
    0,
    Math.max(MOST_ON_THEIR_WAY, threshold + 1) - countOf(pods, isOnItsWay) - sumOf(replacement?.missing),
  );
}

function isBack({ isConsistent, isReady }: PodState): boolean {
  return isConsistent && isReady;
}
