/** Decides which pods of a rollout are upgraded next: who waits, in which order, and how many of them. */
import type { SidecarSet, UpdateStrategy } from "../../api/sidecarset.ts";
import { pdqsort } from "../lib/pdqsort.ts";
import type { PodState } from "../pod/pod-state.ts";
import { type Claims, maxUnavailableOf, partitionOf, takeWithin, usedBudget } from "./budget.ts";
import { classify } from "./classify.ts";
import { podOrder } from "./order.ts";
import { followsOrdinals, orderByOrdinals, placeOf } from "./ordinal-order.ts";
import { type OrdinalTurn, ordinalTurn } from "./ordinal-turn.ts";
import { withOwners } from "./owner-budget.ts";
import { prioritize } from "./prioritize.ts";
import { scatter } from "./scatter.ts";

export interface Selection {
  readonly selected: readonly PodState[];
  readonly notUpgradable: readonly PodState[];
  /** in the order in which they get their turn */
  readonly waiting: readonly PodState[];
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
}

/** `pods` are all matched pods in the order of the list, updated ones included: percentages are shares of them. `canTake` is asked of those who get their turn. */
export function selectPods(
  sidecarSet: SidecarSet,
  pods: readonly PodState[],
  claims: Claims,
  canTake: (state: PodState) => boolean = () => true,
): Selection {
  const strategy = sidecarSet.spec.updateStrategy;
  const byClass = { waiting: [] as PodState[], notUpgradable: [] as PodState[] };
  for (const state of pods) {
    const podClass = classify(state, sidecarSet);
    if (podClass === "waiting" || podClass === "notUpgradable") byClass[podClass].push(state);
  }
  const waiting = orderWaiting(sidecarSet, byClass.waiting, pods);
  const line = waiting.slice(0, Math.max(0, waiting.length - partitionOf(strategy, pods.length)));
  const used = usedBudget(pods, claims);
  const maxUnavailable = maxUnavailableOf(strategy, pods.length);
  const scene = { sidecarSet, line, all: pods, claims, canTake };
  const turn = followsOrdinals(sidecarSet) ? ordinalTurn(scene) : undefined;
  const inTurn = turn ? line.filter((state) => state === turn.next || !placeOf(state.pod)) : line;
  const owners = withOwners(sidecarSet, { pods, claims }, canTake);
  const { taken, blocked } = takeWithin(inTurn, { used, maxUnavailable }, claims, owners.canTake);
  return {
    selected: taken,
    notUpgradable: byClass.notUpgradable,
    waiting,
    kept: waiting.length - line.length,
    maxUnavailable,
    used,
    blocked,
    ...(turn ? { turn } : {}),
    outOfTurn: line.length - inTurn.length,
    ...owners.outcome(),
  };
}

function orderWaiting(
  sidecarSet: SidecarSet,
  waiting: readonly PodState[],
  all: readonly PodState[],
): readonly PodState[] {
  const strategy = sidecarSet.spec.updateStrategy;
  const sorted = sortByDefault(waiting);
  const ordered = strategy?.priorityStrategy || strategy?.scatterStrategy ? spread(sorted, all, strategy) : sorted;
  return followsOrdinals(sidecarSet) ? orderByOrdinals(ordered, all, strategy) : ordered;
}

function spread(
  waiting: readonly PodState[],
  all: readonly PodState[],
  { priorityStrategy, scatterStrategy = [] }: UpdateStrategy,
): readonly PodState[] {
  const states = new Map(waiting.map((state) => [state.pod, state]));
  const prioritized = prioritize(
    waiting.map(({ pod }) => pod),
    priorityStrategy,
  );
  const scattered = scatter(
    prioritized,
    all.map(({ pod }) => pod),
    scatterStrategy,
  );
  return scattered.flatMap((pod) => states.get(pod) ?? []);
}

/** Not stable, exactly as Go's sort is not: equal pods must get their turn in the same order as in OpenKruise. */
export function sortByDefault(waiting: readonly PodState[]): readonly PodState[] {
  const compare = podOrder(waiting.map(({ pod }) => pod));
  const places = pdqsort(
    waiting.map((_, place) => place),
    (a, b) => compare(a, b) < 0,
  );
  return places.map((place) => waiting[place] as PodState);
}
