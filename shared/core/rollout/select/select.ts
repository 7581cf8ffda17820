/** Decides which pods of a rollout are upgraded next: who waits, in which order, and how many of them. */

import type { SidecarSet, UpdateStrategy } from "../../../api/sidecarset.ts";
import { pdqsort } from "../../../go/pdqsort.ts";
import { each, Picked, type Sequence, where } from "../../../go/sequence.ts";
import type { Restarted } from "../../actions.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { keyOfWorkload, restartedWorkloadOf } from "../../pod/workload.ts";
import { type Disruption, guardOf, type HeldPod } from "../disruption/guard.ts";
import type { WavesNow } from "../waves/standing.ts";
import { type BudgetUse, maxUnavailableOf, partitionOf, takeWithin, totalOf, usedBudget } from "./budget.ts";
import { classify } from "./classify.ts";
import { podOrder } from "./order.ts";
import { orderByOrdinals, placeOf } from "./ordinal-order.ts";
import { type OrdinalTurn, ordinalTurn } from "./ordinal-turn.ts";
import { withOwners } from "./owner-budget.ts";
import { prioritize } from "./prioritize.ts";
import { scatter } from "./scatter.ts";

export interface Selection {
  readonly selected: readonly PodState[];
  readonly notUpgradable: Sequence<PodState>;
  /** how many still carry out an older release */
  readonly inFlight: number;
  /** how many `updateStrategy.selector` leaves out */
  readonly notSelected: number;
  /** in the order in which they get their turn */
  readonly waiting: Sequence<PodState>;
  /** of these, the pods that may get their turn now */
  readonly line: Sequence<PodState>;
  /** how many at the end of `waiting` stay because of the partition */
  readonly kept: number;
  readonly maxUnavailable: number;
  readonly used: number;
  /** how many the budget does not allow yet */
  readonly blocked: number;
  /** where ordinals are followed: whose turn it is */
  readonly turn?: OrdinalTurn;
  /** how many wait for pods of StatefulSets before them */
  readonly outOfTurn: number;
  /** who waits for others of its owner, and sentences about such owners */
  readonly crowded: readonly PodState[];
  readonly fullOwners: readonly string[];
  /** how many wait for waves before theirs */
  readonly ofLaterWaves: number;
  /** pods that disruption budgets hold, and the budgets on which selected ones are to be counted */
  readonly held: readonly HeldPod[];
  readonly disruptions: ReadonlyMap<string, Disruption>;
}

/** What has a say beside the spec. */
export interface Asked {
  /** of those who get their turn; absent: each can be taken */
  readonly canTake?: (state: PodState) => boolean;
  readonly waves?: WavesNow | undefined;
}

/** `pods` are all matched pods in the order of the list, updated ones included: percentages are shares of them. */
export function selectPods(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  budgetUse: BudgetUse,
  { canTake = () => true, waves }: Asked = {},
): Selection {
  const strategy = sidecarSet.spec.updateStrategy;
  // Where pods are compared with each other, each of them is one object all along.
  const all = areCompared(sidecarSet) || waves || budgetUse.counted ? [...pods] : pods;
  const { waiting: unordered, ...others } = sortOut(sidecarSet, all, budgetUse.replacement);
  const total = totalOf(pods, budgetUse);
  const inOrder = orderWaiting(sidecarSet, unordered, all);
  const ordered = budgetUse.restarts ? byWorkload(inOrder) : inOrder;
  const inWaves = waves ? byRank(ordered, waves.rankOf) : ordered;
  const byRestart = budgetUse.restarts?.length ? restartedFirst(inWaves, budgetUse.restarts) : inWaves;
  const waiting = countedFirst(byRestart, budgetUse.counted);
  const allowed = waiting.first(Math.max(0, waiting.length - partitionOf(strategy, total)));
  const line = waves ? where(allowed, waves.isOpen) : allowed;
  const used = usedBudget(all, budgetUse);
  const maxUnavailable = maxUnavailableOf(strategy, total);
  const { budgets = [], now = "" } = budgetUse.disruptionBudgets ?? {};
  const guard = guardOf({ pods: all, budgets, reserved: budgetUse.reserved, now }, canTake);
  const turn = steeringOf(sidecarSet).followsOrdinals
    ? ordinalTurn({ sidecarSet, line: [...line], all: [...all], budgetUse, canTake, isFree: guard.isFree })
    : undefined;
  const inTurn = turn ? where(line, (state) => state === turn.next || !placeOf(state.pod)) : line;
  const owners = withOwners(sidecarSet, { pods: all, budgetUse }, guard.canTake);
  const { taken, blocked } = takeWithin(inTurn, { used, maxUnavailable }, budgetUse, owners.canTake);
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
    outOfTurn: line.length - inTurn.length,
    ...owners.outcome(),
    ofLaterWaves: allowed.length - line.length,
    ...guard.outcome(),
  };
}

function areCompared(sidecarSet: SidecarSet): boolean {
  const { priorityStrategy, scatterStrategy } = sidecarSet.spec.updateStrategy ?? {};
  const { followsOrdinals, ownerBudget } = steeringOf(sidecarSet);
  return Boolean(priorityStrategy || scatterStrategy) || followsOrdinals || ownerBudget !== undefined;
}

/** The pods that wait and those that cannot be upgraded, in the order of the list; and how many are neither. */
function sortOut(sidecarSet: SidecarSet, all: Sequence<PodState>, replacement: BudgetUse["replacement"]) {
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

function orderWaiting(sidecarSet: SidecarSet, waiting: Sequence<PodState>, all: Sequence<PodState>): Picked<PodState> {
  const strategy = sidecarSet.spec.updateStrategy;
  const sorted = sortByDefault(waiting);
  const ordered = strategy?.priorityStrategy || strategy?.scatterStrategy ? spread(sorted, all, strategy) : sorted;
  return steeringOf(sidecarSet).followsOrdinals
    ? pickedAll(orderByOrdinals([...ordered], [...all], strategy))
    : ordered;
}

/** Pods of one workload together, as its first one comes, so that a partition keeps whole workloads. */
function byWorkload(waiting: Picked<PodState>): Picked<PodState> {
  const keyOf = ({ pod }: PodState) => restartedWorkloadOf(pod)?.key ?? pod.metadata?.uid;
  return pickedAll([...Map.groupBy(waiting, keyOf).values()].flat());
}

/** What is restarted gets there whatever the order is by now: it is others that a partition keeps. */
function restartedFirst(waiting: Picked<PodState>, restarts: readonly Restarted[]): Picked<PodState> {
  const keys = new Set(restarts.map(keyOfWorkload));
  return byRank(waiting, ({ pod }) => (keys.has(restartedWorkloadOf(pod)?.key ?? "") ? 0 : 1));
}

/** A late patch of such a pod may land at any time, so the partition keeps other pods. */
function countedFirst(waiting: Picked<PodState>, counted: ReadonlySet<string> | undefined): Picked<PodState> {
  if (counted === undefined) return waiting;
  return byRank(waiting, ({ pod }) => (counted.has(pod.metadata?.uid ?? "") ? 0 : 1));
}

/** Those of equal rank stay in their order. By waves it is pods of the last ones that a partition keeps. */
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

/** Not stable, exactly as Go's sort is not: equal pods must get their turn in the same order as in OpenKruise. */
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
