/** Decides how many of the pods in line may be upgraded now, without crossing partition and maxUnavailable. */
import type { UpdateStrategy } from "../../api/sidecarset.ts";
import { scaleIntOrPercent, scaleIntOrPercentLegacy } from "../lib/int-or-percent.ts";
import type { PodState } from "../pod/pod-state.ts";

export interface Taken {
  readonly taken: readonly PodState[];
  /** how many did not get their turn because the budget is used up */
  readonly blocked: number;
}

/**
 * How many waiting pods stay old. `total` is the number of all matched pods.
 * Compat: what cannot be read counts as 0, so everything is upgraded (upgrade-select, hand/partition-abc-of-10).
 */
export function partitionOf(strategy: UpdateStrategy | undefined, total: number): number {
  const partition = strategy?.partition ?? 0;
  const scaled = scaleIntOrPercent(partition, total) ?? 0;
  const isPercent = typeof partition === "string" && partition !== "100%";
  // Less than 100% leaves at least one pod to upgrade.
  const kept = isPercent && total > 1 && scaled === total ? total - 1 : scaled;
  return Math.max(0, Math.min(kept, total));
}

/** In pods. Compat: text is a percentage even without its sign, else 0 (upgrade-select, hand/maxunavailable-5-of-7). */
export function maxUnavailableOf(strategy: UpdateStrategy | undefined, total: number): number {
  return scaleIntOrPercentLegacy(strategy?.maxUnavailable ?? 1, total) ?? 0;
}

/** Pods that were upgraded and are not back yet, or are reserved for it. Old pods that are down use no budget. */
export function usedBudget(pods: readonly PodState[], reserved: ReadonlySet<string>): number {
  return pods.filter(
    (state) => isReserved(state, reserved) || (state.isUpdated && !(state.isConsistent && state.isReady)),
  ).length;
}

/**
 * From the front of the line: pods that are down cost nothing, others one each. The first that does not fit ends it,
 * but for reserved ones, whose cost is counted in `used` already. One that cannot be taken is passed over at no cost.
 */
export function takeWithin(
  line: readonly PodState[],
  budget: { readonly used: number; readonly maxUnavailable: number },
  reserved: ReadonlySet<string>,
  canTake: (state: PodState) => boolean,
): Taken {
  const taken: PodState[] = [];
  let left = budget.maxUnavailable - budget.used;
  let isBlocked = false;
  let blocked = 0;
  for (const state of line) {
    const cost = state.isReady && !isReserved(state, reserved) ? 1 : 0;
    isBlocked ||= cost > left && cost > 0;
    if (isBlocked && !isReserved(state, reserved)) blocked++;
    else if (canTake(state)) {
      taken.push(state);
      left -= cost;
    }
  }
  return { taken, blocked };
}

function isReserved({ pod }: PodState, reserved: ReadonlySet<string>): boolean {
  return reserved.has(pod.metadata?.uid ?? "");
}
