/** Decides how many of the pods in line may be upgraded now, without crossing partition and maxUnavailable. */
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

/** Of one that costs nothing, however much is used. */
const NOTHING = Number.NEGATIVE_INFINITY;

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

/** What uses budget beside pods that are down. */
export interface BudgetUse {
  /** uids of pods that may be written to at any moment */
  readonly reserved: ReadonlySet<string>;
  /** the feature gate: every pod that is down uses budget, whatever took it down; else updated ones only */
  readonly StrictMaxUnavailable: boolean;
  /** true: all of `reserved` were reserved for the spec that is decided on, so that there was room for each; absent: not known */
  readonly isReservedForThis?: boolean;
  /** pods that are not written to now because writes were refused; absent: none */
  readonly passedOver?: PassedOver;
  /** uids of reserved pods that cannot be fenced, first in line so that a late patch finds its place; absent: nothing new may be reserved beside such a pod */
  readonly counted?: ReadonlySet<string>;
  /** what rules have to say of it; absent ones say nothing */
  readonly rules: Partial<RuleUse>;
}

/** What each rule knows of pods that are down, or about to be, by the name of the rule. */
export interface RuleUse {
  /** pods of StatefulSets that are down and not matched, where ordinals are followed */
  readonly ordinals: DownPods;
  /** how many pods of one owner may be down at once */
  readonly ownerBudget: Amount;
  /** what disruption budgets say, as seen at this time */
  readonly disruptionBudgets: { readonly budgets: readonly DisruptionBudget[]; readonly now: string };
  /** how many pods are being evicted because they are not among those that are counted */
  readonly missed: number;
  readonly replacement: ReplacementUse;
  /** workloads that are being restarted, or about to be; absent: no restarts are asked for */
  readonly restarts: readonly Restarted[];
  /** pods that pull images before others get their turn */
  readonly prePull: PullFactsNow;
}

interface ReplacementUse {
  /** evicted pods without a successor, by controller; absent: none */
  readonly missing?: Missing;
  /** they themselves; absent: none */
  readonly gone?: readonly Departure[];
  /** which pods are evicted since they cannot be upgraded in place; absent: none */
  readonly plan?: Replacement;
  /** controllers and namespaces, by their keys, of which evictions were refused a moment ago; absent: none */
  readonly keptOwners?: ReadonlySet<string>;
}

/** Those of a rollout: missing ones are on their way back, so shares are of them too. */
export function totalOf(pods: Sequence<unknown>, { rules }: BudgetUse): number {
  return pods.length + sumOf(rules.replacement?.missing);
}

/** Pods that were upgraded and are not back yet, or are reserved for it, or that another SidecarSet drains, and evicted ones until there are others. Old pods that are down use no budget, but for the gate. */
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

/** How many use budget only because other SidecarSets drain them. */
export function drainedElsewhere(pods: Sequence<PodState>, budgetUse: BudgetUse): number {
  return countOf(pods, (state) => state.isDrainedElsewhere === true && !usesOwnBudget(state, budgetUse));
}

/** It uses budget once it is updated. */
export function isDown({ isConsistent, isReady, isIgnored }: PodState): boolean {
  return !((isConsistent && isReady) || isIgnored);
}

/**
 * From the front of the line: pods that are down cost nothing, others one each. The first that does not fit ends it,
 * but for reserved ones, whose cost is counted in `used` already. One that cannot be taken is passed over at no cost.
 * Where more is used than there is (the budget is smaller now, or pods count again after a rollback) no reserved one that
 * would go down is taken: older patches of the others may still land, and nobody knows of which. Those that were reserved
 * for this very spec go on all the same: the pass that reserved them may be writing to them at this moment. Pods that
 * other SidecarSets drain keep only new ones back, or two SidecarSets could put each other's pods back for ever.
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
    const needed = isHeld ? NOTHING : neededFor(state, budgetUse);
    isBlocked ||= needed > left;
    if (isHeld ? areTooMany && goesDown(state, budgetUse) : isBlocked) blocked++;
    else if (canTake(state)) {
      taken.push(state);
      left -= Math.max(0, needed);
    }
  });
  return { taken, blocked };
}

/** How much has to be left. What is counted in `used` already, by the gate or because it is drained, needs no more: that much there has to be. */
function neededFor(state: PodState, budgetUse: BudgetUse): number {
  if (!goesDown(state, budgetUse)) return NOTHING;
  if (state.isDrainedElsewhere) return 0;
  return state.isReady || !budgetUse.StrictMaxUnavailable ? 1 : 0;
}

/** Its turn ends what works: an eviction does too where a hot upgrade, which would have gone on, has the pod count as not ready. */
export function goesDown(state: PodState, { rules }: Pick<BudgetUse, "rules">): boolean {
  return state.isReady || (state.isWorking && rules.replacement?.plan?.replaces(state) === true);
}

/** Reserved pods that are down anyway were taken at no cost, but for the gate. A pod was ready when it was drained. */
function heldForFree(line: Sequence<PodState>, budgetUse: BudgetUse): number {
  if (budgetUse.StrictMaxUnavailable) return 0;
  const isFree = (state: PodState) => !(goesDown(state, budgetUse) || state.drain);
  return countOf(line, (state) => isReserved(state, budgetUse.reserved) && isFree(state));
}

function isReserved(state: PodState, reserved: ReadonlySet<string>): boolean {
  return state.isReservedNow !== false && reserved.has(state.pod.metadata?.uid ?? "");
}
