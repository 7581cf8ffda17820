/** The number of pods in line that may be upgraded now, within partition and maxUnavailable. */
import type { UpdateStrategy } from "../../../api/sidecarset.ts";
import { scaleIntOrPercent, scaleIntOrPercentLegacy } from "../../../go/int-or-percent.ts";
import { countOf, each, type Sequence } from "../../../go/sequence.ts";
import type { Departure, Restarted } from "../../actions.ts";
import type { PodState } from "../../pod/pod-state.ts";
import type { Amount } from "../../pod/steering/annotations.ts";
import type { PassedOver } from "../../refused-pods.ts";
import type { DisruptionBudget } from "../rules/disruption-budgets/disruption-budget.ts";
import type { DownPods } from "../rules/ordinals/ordinal-order.ts";
import type { PullFactsNow } from "../rules/pre-pull/pull-facts.ts";
import { type Missing, sumOf } from "../rules/replacement/missing-pods.ts";
import type { Replacement } from "../rules/replacement/replacement.ts";

/** Cost of a pod that never consumes budget. */
const FREE = Number.NEGATIVE_INFINITY;

export interface Taken {
  readonly taken: readonly PodState[];
  /** number of pods that wait because the budget is used up */
  readonly blocked: number;
}

/**
 * The number of waiting pods that stay old. `total`: number of all matched pods. Compat: an unreadable partition counts
 * as 0, so everything is upgraded (upgrade-select, hand/partition-abc-of-10).
 */
export function partitionOf(strategy: UpdateStrategy | undefined, total: number): number {
  const partition = strategy?.partition ?? 0;
  const scaled = scaleIntOrPercent(partition, total) ?? 0;
  const isPercent = typeof partition === "string" && partition !== "100%";
  // Less than 100% leaves at least one pod to upgrade.
  const kept = isPercent && total > 1 && scaled === total ? total - 1 : scaled;
  return Math.max(0, Math.min(kept, total));
}

/**
 * The limit in pods. Compat: text is a percentage even without its sign, else 0 (upgrade-select,
 * hand/maxunavailable-5-of-7).
 */
export function maxUnavailableOf(strategy: UpdateStrategy | undefined, total: number): number {
  return scaleIntOrPercentLegacy(strategy?.maxUnavailable ?? 1, total) ?? 0;
}

/** The use of budget that does not show in the pods' own state. */
export interface BudgetUse {
  /** uids of pods that may be written to at any moment */
  readonly reserved: ReadonlySet<string>;
  /** the feature gate: every pod that is down uses budget; without the gate only updated pods do */
  readonly StrictMaxUnavailable: boolean;
  /** true: all of `reserved` were reserved for the current spec, so there was room for each; absent: unknown */
  readonly isReservedForThis?: boolean;
  /** pods that are skipped now because writes were refused; absent: none */
  readonly passedOver?: PassedOver;
  /**
   * uids of reserved pods that cannot be fenced. They are first in line, so that a late patch finds its place; absent:
   * nothing new may be reserved beside such a pod
   */
  readonly counted?: ReadonlySet<string>;
  /** the rules' additions; absent: a rule has none */
  readonly rules: Partial<RuleUse>;
}

/** Facts of each rule about pods that are down, or soon will be, by the rule's name. */
export interface RuleUse {
  /** unmatched pods of StatefulSets that are down, when ordinals are followed */
  readonly ordinals: DownPods;
  /** number of pods of one owner that may be down at once */
  readonly ownerBudget: Amount;
  /** disruption budgets, as read at this time */
  readonly disruptionBudgets: { readonly budgets: readonly DisruptionBudget[]; readonly now: string };
  /** number of pods that are being evicted and that no other count includes */
  readonly missed: number;
  readonly replacement: ReplacementUse;
  /** workloads that are being restarted, or soon will be; absent: no restarts are requested */
  readonly restarts: readonly Restarted[];
  /** pods that pull images before other pods are updated */
  readonly prePull: PullFactsNow;
}

interface ReplacementUse {
  /** evicted pods without a successor, by controller; absent: none */
  readonly missing?: Missing;
  /** the departures of these pods; absent: none */
  readonly gone?: readonly Departure[];
  /** namespaces whose evicted pods have lately had no successors in time; absent: none */
  readonly overdue?: ReadonlySet<string>;
  /** pods that are evicted because they cannot be upgraded in place; absent: none */
  readonly plan?: Replacement;
  /** keys of controllers and namespaces whose evictions were refused a moment ago; absent: none */
  readonly keptOwners?: ReadonlySet<string>;
}

/** The number of pods for percentages. Missing pods will return, so they count. */
export function totalOf(pods: Sequence<unknown>, { rules }: BudgetUse): number {
  return pods.length + sumOf(rules.replacement?.missing);
}

/**
 * Pods that use budget: upgraded pods that have not recovered, reserved pods, pods that another SidecarSet drains, and
 * evicted pods until they are replaced. Without the gate old pods that are down use none.
 */
export function usedBudget(pods: Sequence<PodState>, budgetUse: BudgetUse): number {
  const { missed = 0, replacement } = budgetUse.rules;
  return missed + sumOf(replacement?.missing) + countOf(pods, (state) => usesBudget(state, budgetUse));
}

export function usesBudget(state: PodState, budgetUse: BudgetUse): boolean {
  return state.isDrainedElsewhere === true || usesOwnBudget(state, budgetUse);
}

function usesOwnBudget(state: PodState, { reserved, StrictMaxUnavailable }: BudgetUse): boolean {
  return isReserved(state, reserved) || ((state.isUpdated || StrictMaxUnavailable) && isDown(state));
}

/** The number of pods that use budget only because other SidecarSets drain them. */
export function drainedElsewhere(pods: Sequence<PodState>, budgetUse: BudgetUse): number {
  return countOf(pods, (state) => state.isDrainedElsewhere === true && !usesOwnBudget(state, budgetUse));
}

/** True if the pod is down, so that it uses budget once it is updated. */
export function isDown({ isConsistent: runs, isReady, isIgnored, resize }: PodState): boolean {
  const isConsistent = runs || resize?.isFree === true;
  return !((isConsistent && isReady) || isIgnored);
}

/**
 * Takes pods from the front of the line. A pod that is down costs nothing, any other costs one. The first pod that does
 * not fit ends the loop, except for reserved pods, whose cost is in `used` already. A pod that cannot be taken is
 * skipped at no cost. More may be used than allowed, after a smaller budget or a rollback. Then no reserved pod that
 * would go down is taken, because late patches of the others may still land. Pods reserved for this very spec continue,
 * because their pass may be writing now. Pods that other SidecarSets drain hold only new ones, or two SidecarSets could
 * restore each other's pods for ever.
 */
export function takeWithin(
  line: Sequence<PodState>,
  budget: { readonly used: number; readonly maxUnavailable: number; readonly elsewhere?: number },
  budgetUse: BudgetUse,
  canTake: (state: PodState) => boolean,
): Taken {
  const taken: PodState[] = [];
  let left = budget.maxUnavailable - budget.used;
  const areTooMany =
    budgetUse.isReservedForThis !== true && -left - (budget.elsewhere ?? 0) > heldForFree(line, budgetUse);
  let isBlocked = false;
  let blocked = 0;
  each(line, (state) => {
    const isHeld = isReserved(state, budgetUse.reserved);
    const needed = isHeld ? FREE : neededFor(state, budgetUse);
    isBlocked ||= needed > left;
    if (isHeld ? areTooMany && goesDown(state, budgetUse) : isBlocked) blocked++;
    else if (canTake(state)) {
      taken.push(state);
      left -= Math.max(0, needed);
    }
  });
  return { taken, blocked };
}

/** The budget that must be left for this pod. A pod that `used` counts, by the gate or a drain, needs no more. */
function neededFor(state: PodState, budgetUse: BudgetUse): number {
  if (!goesDown(state, budgetUse)) return FREE;
  if (state.isDrainedElsewhere) return 0;
  return state.isReady || !budgetUse.StrictMaxUnavailable ? 1 : 0;
}

/** True if the update stops a working pod. An eviction does so even for an unready pod in a hot upgrade. */
export function goesDown(state: PodState, { rules }: Pick<BudgetUse, "rules">): boolean {
  return state.isReady || (state.isWorking && rules.replacement?.plan?.replaces(state) === true);
}

/**
 * The number of reserved pods that were taken without cost, because they are down already. The gate counts them. A
 * drained pod was ready.
 */
function heldForFree(line: Sequence<PodState>, budgetUse: BudgetUse): number {
  if (budgetUse.StrictMaxUnavailable) return 0;
  const isFree = (state: PodState) => !(goesDown(state, budgetUse) || state.drain);
  return countOf(line, (state) => isReserved(state, budgetUse.reserved) && isFree(state));
}

function isReserved(state: PodState, reserved: ReadonlySet<string>): boolean {
  return state.isReservedNow !== false && reserved.has(state.pod.metadata?.uid ?? "");
}
