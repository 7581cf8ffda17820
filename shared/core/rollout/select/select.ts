/** Selects the pods of a rollout that are upgraded next: waiting pods, their order, and how many are allowed. */
import type { ContainerStatus, Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../../api/sidecarset.ts";
import { pdqsort } from "../../../go/pdqsort.ts";
import { storedSeconds } from "../../../go/seconds-between.ts";
import { each, Picked, type Sequence, where } from "../../../go/sequence.ts";
import type { Restarted } from "../../actions.ts";
import { isPodReady, readyCondition } from "../../pod/is-ready.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { keyOfWorkload, restartedWorkloadOf } from "../../pod/workload.ts";
import { type Disruption, guardOf, type HeldPod } from "../rules/disruption-budgets/guard.ts";
import { orderByOrdinals, placeOf } from "../rules/ordinals/ordinal-order.ts";
import { type OrdinalTurn, ordinalTurn } from "../rules/ordinals/ordinal-turn.ts";
import { withOwners } from "../rules/owner-budget/owner-budget.ts";
import { type PullGuard, type PullPlan, pullGuard } from "../rules/pre-pull/pull-guard.ts";
import type { WavesNow } from "../rules/waves/standing.ts";
import {
  type BudgetUse,
  drainedElsewhere,
  maxUnavailableOf,
  partitionOf,
  type RuleUse,
  takeWithin,
  totalOf,
  usedBudget,
} from "./budget.ts";
import { classify, type Replaceable } from "./classify.ts";
import { prioritize } from "./prioritize.ts";

export interface Selection {
  readonly selected: readonly PodState[];
  readonly notUpgradable: Sequence<PodState>;
  /** number of pods that still carry out an older release */
  readonly inFlight: number;
  /** number of pods that `updateStrategy.selector` leaves out */
  readonly notSelected: number;
  /** waiting pods, in the order of the rollout */
  readonly waiting: Sequence<PodState>;
  /** the waiting pods that may be next */
  readonly line: Sequence<PodState>;
  /** number of pods at the end of `waiting` that the partition keeps */
  readonly kept: number;
  readonly maxUnavailable: number;
  readonly used: number;
  /** number of pods that the budget does not allow yet */
  readonly blocked: number;
  /** the turn of StatefulSets, when ordinals are followed */
  readonly turn?: OrdinalTurn;
  /** pods that wait for other pods of their owner, and sentences about such owners */
  readonly crowded: readonly PodState[];
  readonly fullOwners: readonly string[];
  /** number of pods of later waves, which wait for earlier waves */
  readonly ofLaterWaves: number;
  /** pods that disruption budgets hold, and the budgets that must count the selected ones */
  readonly held: readonly HeldPod[];
  readonly disruptions: ReadonlyMap<string, Disruption>;
  /** image pulls; absent: no images are pulled first */
  readonly pulls?: PullPlan | undefined;
}

/** Limits that are not in the spec. */
export interface Asked {
  /** filters the selected pods; absent: each can be taken */
  readonly canTake?: (state: PodState) => boolean;
  readonly waves?: WavesNow | undefined;
}

/** Most functions never need the rule, so they load it on demand (infra/aws/deferred.ts). */
function guardPulls(...[given, canTake]: Parameters<typeof pullGuard>): PullGuard {
  return given.budgetUse.rules.prePull ? pullGuard(given, canTake) : { canTake, outcome: () => undefined };
}

/** `pods`: all matched pods in the list's order, including updated ones: percentages refer to them. */
export function selectPods(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  budgetUse: BudgetUse,
  { canTake = () => true, waves }: Asked = {},
): Selection {
  const strategy = sidecarSet.spec.updateStrategy;
  // Comparisons of pods need one stable object per pod.
  const all = areCompared(sidecarSet, budgetUse) || waves || budgetUse.counted ? [...pods] : pods;
  const { waiting: unordered, ...others } = sortOut(sidecarSet, all, budgetUse.rules.replacement?.plan);
  const total = totalOf(pods, budgetUse);
  const inOrder = overdueLast(orderWaiting(sidecarSet, unordered, { all, ...budgetUse.rules }), budgetUse.rules);
  const ordered = budgetUse.rules.restarts ? byWorkload(inOrder) : inOrder;
  const inWaves = waves ? byRank(ordered, waves.rankOf) : ordered;
  const byRestart = budgetUse.rules.restarts?.length ? restartedFirst(inWaves, budgetUse.rules.restarts) : inWaves;
  const waiting = countedFirst(byRestart, budgetUse.counted);
  const allowed = waiting.first(Math.max(0, waiting.length - partitionOf(strategy, total)));
  const line = waves ? where(allowed, waves.isOpen) : allowed;
  const used = usedBudget(all, budgetUse);
  const elsewhere = drainedElsewhere(all, budgetUse);
  const maxUnavailable = maxUnavailableOf(strategy, total);
  const { budgets = [], now = "" } = budgetUse.rules.disruptionBudgets ?? {};
  const pulls = guardPulls({ sidecarSet, line, pods: all, budgetUse }, canTake);
  const guard = guardOf({ pods: all, budgets, reserved: budgetUse.reserved, now }, pulls.canTake);
  const turn = budgetUse.rules.ordinals
    ? ordinalTurn({ sidecarSet, line: [...line], all: [...all], budgetUse, canTake, isFree: guard.isFree })
    : undefined;
  const ofTurn = turn ? where(line, (state) => state === turn.next || !placeOf(state.pod)) : line;
  const owners = withOwners({ pods: all, budgetUse }, guard.canTake);
  const { taken, blocked } = takeWithin(ofTurn, { used, maxUnavailable, elsewhere }, budgetUse, owners.canTake);
  return {
    selected: taken,
    ...others,
    waiting,
    line,
    kept: waiting.length - allowed.length,
    maxUnavailable,
    used,
    blocked,
    ...(turn ? { turn } : {}),
    ...owners.outcome(),
    ofLaterWaves: allowed.length - line.length,
    ...guard.outcome(),
    pulls: pulls.outcome(),
  };
}

function areCompared(sidecarSet: SidecarSet, { rules }: BudgetUse): boolean {
  const { priorityStrategy, scatterStrategy } = sidecarSet.spec.updateStrategy ?? {};
  return Boolean(priorityStrategy || scatterStrategy || rules.ordinals || rules.ownerBudget);
}

/** The waiting pods and the pods that cannot be upgraded, in the list's order, and the counts of the rest. */
function sortOut(sidecarSet: SidecarSet, all: Sequence<PodState>, replacement: Replaceable | undefined) {
  const waiting = new Uint32Array(all.length);
  const notUpgradable = new Uint32Array(all.length);
  let [waitingCount, notUpgradableCount, inFlight, notSelected] = [0, 0, 0, 0];
  each(all, (state, place) => {
    const podClass = classify(state, sidecarSet, replacement);
    if (podClass === "waiting") waiting[waitingCount++] = place;
    else if (podClass === "notUpgradable") notUpgradable[notUpgradableCount++] = place;
    else if (podClass === "inFlight") inFlight++;
    else if (podClass === "notSelected") notSelected++;
  });
  return {
    waiting: picked(all, waiting.subarray(0, waitingCount)),
    notUpgradable: picked(all, notUpgradable.subarray(0, notUpgradableCount)),
    inFlight,
    notSelected,
  };
}

function orderWaiting(
  sidecarSet: SidecarSet,
  waiting: Sequence<PodState>,
  { all, ordinals }: { readonly all: Sequence<PodState>; readonly ordinals?: RuleUse["ordinals"] },
): Picked<PodState> {
  const strategy = sidecarSet.spec.updateStrategy;
  const sorted = sortByDefault(waiting);
  const ordered = strategy?.priorityStrategy || strategy?.scatterStrategy ? spread(sorted, all, strategy) : sorted;
  return ordinals ? pickedAll(orderByOrdinals([...ordered], [...all], strategy)) : ordered;
}

/** Groups pods by workload, in the order of the workloads' first pods, so that a partition keeps whole workloads. */
function byWorkload(waiting: Picked<PodState>): Picked<PodState> {
  const keyOf = ({ pod }: PodState) => restartedWorkloadOf(pod)?.key ?? pod.metadata?.uid;
  return pickedAll([...Map.groupBy(waiting, keyOf).values()].flat());
}

/** Puts pods last whose namespace has evicted pods without a successor: each may hold the budget for ten minutes. */
function overdueLast(waiting: Picked<PodState>, { replacement }: BudgetUse["rules"]): Picked<PodState> {
  const overdue = replacement?.overdue;
  return overdue ? byRank(waiting, ({ pod }) => (overdue.has(pod.metadata?.namespace ?? "") ? 1 : 0)) : waiting;
}

/** Puts pods of restarted workloads first: the restart updates them anyway, so a partition keeps others. */
function restartedFirst(waiting: Picked<PodState>, restarts: readonly Restarted[]): Picked<PodState> {
  const keys = new Set(restarts.map(keyOfWorkload));
  return byRank(waiting, ({ pod }) => (keys.has(restartedWorkloadOf(pod)?.key ?? "") ? 0 : 1));
}

/** Puts pods first to which a late patch may be written at any time, so that the partition keeps other pods. */
function countedFirst(waiting: Picked<PodState>, counted: ReadonlySet<string> | undefined): Picked<PodState> {
  if (counted === undefined) return waiting;
  return byRank(waiting, ({ pod }) => (counted.has(pod.metadata?.uid ?? "") ? 0 : 1));
}

/** Sorts stably by rank. With waves a partition keeps pods of the last waves. */
function byRank(waiting: Picked<PodState>, rankOf: (state: PodState) => number): Picked<PodState> {
  return pickedAll([...waiting].toSorted((a, b) => rankOf(a) - rankOf(b)));
}

function spread(
  waiting: Sequence<PodState>,
  all: Sequence<PodState>,
  { priorityStrategy, scatterStrategy = [] }: UpdateStrategy,
): Picked<PodState> {
  const states = new Map(Array.from(waiting, (state) => [state.pod, state]));
  const prioritized = prioritize(
    Array.from(waiting, ({ pod }) => pod),
    priorityStrategy,
  );
  const scattered = scatter(
    prioritized,
    Array.from(all, ({ pod }) => pod),
    scatterStrategy,
  );
  return pickedAll(scattered.flatMap((pod) => states.get(pod) ?? []));
}

/** Sorts unstably, exactly as Go does: equal pods must be upgraded in the same order as in OpenKruise. */
export function sortByDefault(waiting: Sequence<PodState>): Picked<PodState> {
  const compare = podOrder(waiting);
  const places = pdqsort(placesOf(waiting), (a: number, b) => compare(a, b) < 0);
  return picked(waiting, places);
}

function picked<T>(of: Sequence<T>, places: Uint32Array): Picked<T> {
  return new Picked((place) => of.at(place), places);
}

function pickedAll<T>(members: readonly T[]): Picked<T> {
  return picked(members, placesOf(members));
}

function placesOf(members: Sequence<unknown>): Uint32Array {
  return new Uint32Array(members.length).map((_, place) => place);
}

/** The default order of waiting pods: the pod whose loss hurts least goes first. */
const PHASE_RANK: ReadonlyMap<string, number> = new Map([
  ["Unknown", 1],
  ["Running", 2],
]);

const UNKNOWN = Number.NEGATIVE_INFINITY;

/**
 * Compares two of `pods` by index: negative, zero or positive. First go unassigned, pending and unready pods, then pods
 * that became ready recently, restarted often, or are young. Typed arrays outside the heap hold the compared values:
 * objects for 150,000 pods would take half the memory of their records. Source: Kubernetes pkg/controller, ActivePods.
 */
export function podOrder(pods: Sequence<Pick<PodState, "pod">>): (a: number, b: number) => number {
  const standing = new Uint8Array(pods.length);
  const restarts = new Int32Array(pods.length);
  const ofSidecars = new Int32Array(pods.length);
  const readySince = new Float64Array(pods.length);
  const created = new Float64Array(pods.length);
  each(pods, ({ pod }, place) => {
    standing[place] = standingOf(pod);
    restarts[place] = maxRestarts(pod.status?.containerStatuses ?? []);
    ofSidecars[place] = sidecarRestarts(pod);
    readySince[place] = readySinceOf(pod);
    created[place] = timeOf(pod.metadata?.creationTimestamp);
  });
  const difference = (column: ArrayLike<number>, a: number, b: number) => (column[a] ?? 0) - (column[b] ?? 0);
  return (a, b) =>
    difference(standing, a, b) ||
    compareTimes(readySince[a] ?? UNKNOWN, readySince[b] ?? UNKNOWN) ||
    difference(restarts, b, a) ||
    difference(ofSidecars, b, a) ||
    compareTimes(created[a] ?? UNKNOWN, created[b] ?? UNKNOWN);
}

/** One number from assignment, phase and readiness, in this order of importance. */
function standingOf(pod: Pod): number {
  const phaseRank = PHASE_RANK.get(pod.status?.phase ?? "") ?? 0;
  return (pod.spec.nodeName ? 8 : 0) + 2 * phaseRank + (isPodReady(pod) ? 1 : 0);
}

/** The time since which the pod is ready; unknown for an unready pod. */
function readySinceOf(pod: Pod): number {
  const ready = readyCondition(pod);
  return ready?.status === "True" ? timeOf(ready.lastTransitionTime) : UNKNOWN;
}

/** Compares times: unknown before known, then the later time first. */
function compareTimes(a: number, b: number): number {
  if (a === b) return 0;
  if (a === UNKNOWN || b === UNKNOWN) return a === UNKNOWN ? -1 : 1;
  return a > b ? -1 : 1;
}

/** The time in seconds. */
function timeOf(time: string | null | undefined): number {
  return !time || time === "0001-01-01T00:00:00Z" ? UNKNOWN : (storedSeconds(time) ?? UNKNOWN);
}

function maxRestarts(statuses: readonly ContainerStatus[]): number {
  return statuses.reduce((most, { restartCount = 0 }) => Math.max(most, restartCount), 0);
}

function sidecarRestarts({ spec, status }: Pod): number {
  const statuses = status?.initContainerStatuses ?? [];
  if (statuses.length === 0) return 0;
  const inits = spec.initContainers ?? [];
  const native = new Set(inits.filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name));
  return maxRestarts(statuses.filter(({ name }) => native.has(name)));
}

/** How waiting pods with the same label are spread over a rollout, as updateStrategy.scatterStrategy asks. */
interface ScatterTerm {
  readonly key: string;
  /** `*` means any value of the label */
  readonly value: string;
}

/** How pods with and without a label alternate. */
interface Grouping {
  readonly groups: number;
  readonly matchedSize: number;
  readonly otherSize: number;
  /** number of pods without the label that come before the first group */
  readonly leading: number;
}

/** `waiting`: pods in their order so far; `all`: matched pods, whose proportions the spreading follows. */
function scatter(waiting: readonly Pod[], all: readonly Pod[], terms: readonly ScatterTerm[]): readonly Pod[] {
  const expanded = expandTerms(terms, all);
  const ordered = expanded.length > 1 ? orderTerms(expanded, waiting) : expanded;
  return ordered.reduce((pods, term) => scatterBy(term, pods, all), waiting);
}

function expandTerms(terms: readonly ScatterTerm[], all: readonly Pod[]): readonly ScatterTerm[] {
  const expanded = terms.flatMap(({ key, value }) =>
    value === "*"
      ? all.filter((pod) => hasLabel(pod, key)).map((pod) => ({ key, value: labelOf(pod, key) }))
      : [{ key, value }],
  );
  return [...new Map(expanded.map((term) => [JSON.stringify([term.key, term.value]), term])).values()];
}

/** Drops terms that no waiting pod has, and puts the most frequent term first. */
function orderTerms(terms: readonly ScatterTerm[], waiting: readonly Pod[]): readonly ScatterTerm[] {
  const counted = terms.map((term) => ({
    term,
    count: waiting.filter((pod) => hasLabel(pod, term.key) && labelOf(pod, term.key) === term.value).length,
  }));
  return counted
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .map(({ term }) => term);
}

/** Spreads pods with one label. The last pod with the label goes to the very end. */
function scatterBy({ key, value }: ScatterTerm, waiting: readonly Pod[], all: readonly Pod[]): readonly Pod[] {
  const isMatch = (pod: Pod) => labelOf(pod, key) === value;
  const matched = waiting.filter(isMatch);
  const others = waiting.filter((pod) => !isMatch(pod));
  const last = matched.pop();
  if (last === undefined || matched.length === 0 || others.length <= 1) return waiting;
  const totalMatched = all.filter(isMatch).length;
  const total = { matched: totalMatched - 1, others: all.length - totalMatched };
  const grouping = groupByDensity(total, { matched: matched.length, others: others.length });
  return [...alternate(matched, others, grouping), last];
}

interface Counts {
  readonly matched: number;
  readonly others: number;
}

/** Groups pods by their proportions among all pods, or among waiting pods if the label is more frequent there. */
function groupByDensity(total: Counts, waiting: Counts): Grouping {
  if (ratio(total) >= ratio(waiting)) {
    return { ...groupSizes(waiting), groups: Math.min(waiting.matched, waiting.others), leading: 0 };
  }
  const sizes = groupSizes(total);
  const groups = Math.min(
    Math.floor(waiting.matched / sizes.matchedSize),
    Math.floor(waiting.others / sizes.otherSize),
  );
  return { ...sizes, groups, leading: waiting.others - groups * sizes.otherSize };
}

/** Compat: uses 32-bit floats (upgrade-select, hand/scatter-with-updated-pods-density). */
function ratio({ matched, others }: Counts): number {
  return Math.fround(Math.fround(others) / Math.fround(matched));
}

function groupSizes({ matched, others }: Counts) {
  const groups = Math.min(matched, others);
  return { matchedSize: Math.round(matched / groups), otherSize: Math.round(others / groups) };
}

function alternate(matched: readonly Pod[], others: readonly Pod[], grouping: Grouping): readonly Pod[] {
  const { groups, matchedSize, otherSize, leading } = grouping;
  const result = others.slice(0, leading);
  for (let group = 0; group < groups; group++) {
    result.push(...matched.slice(group * matchedSize, (group + 1) * matchedSize));
    result.push(...others.slice(leading + group * otherSize, leading + (group + 1) * otherSize));
  }
  return [...result, ...matched.slice(groups * matchedSize), ...others.slice(leading + groups * otherSize)];
}

function hasLabel(pod: Pod, key: string): boolean {
  return Object.hasOwn(pod.metadata?.labels ?? {}, key);
}

/** The value of a label; a missing label counts as empty. */
function labelOf(pod: Pod, key: string): string {
  return pod.metadata?.labels?.[key] ?? "";
}
