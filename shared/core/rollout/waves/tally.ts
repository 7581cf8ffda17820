/** Decides what is left to be done in each wave. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { classify, type Replaceable } from "../select/classify.ts";
import { canFlip } from "../upgrade/hot-slot.ts";

/** Counts of pods. */
export interface Tally {
  readonly pods: number;
  readonly updated: number;
  readonly updatedReady: number;
  /** to be updated, or to be ready, before the wave is complete */
  readonly left: number;
  /** of those, no pods: workloads that are being restarted, or are to be */
  readonly restarts: number;
  /** of those: could be upgraded now */
  readonly waiting: number;
}

const NO_PODS: Tally = { pods: 0, updated: 0, updatedReady: 0, left: 0, restarts: 0, waiting: 0 };

/** What pods are counted by. */
export interface TallyFacts {
  readonly sidecarSet: SidecarSet;
  /** of a namespace, from 0 */
  readonly rankOf: (namespace: string) => number;
  readonly count: number;
  /** absent: no pod is replaced */
  readonly replacement?: Replaceable | undefined;
  /** pods that were evicted, and that no other pod has taken the place of; absent: none */
  readonly gone?: readonly { readonly namespace: string }[] | undefined;
  /** workloads that are being restarted, so that pods of theirs may be on their way, or are to be; absent: none */
  readonly restarts?: readonly { readonly namespace: string }[] | undefined;
}

/**
 * One for each rank. Pods that can only be recreated, and are not replaced, and pods that the update selector leaves out
 * are not waited for.
 */
export function tallyWaves(states: Sequence<PodState>, facts: TallyFacts): readonly Tally[] {
  const { rankOf, count, gone = [], restarts = [] } = facts;
  const tallies = Array.from({ length: count }, () => NO_PODS);
  const add = (namespace: string, tally: Tally) => {
    const rank = rankOf(namespace);
    tallies[rank] = sum(tallies[rank] ?? NO_PODS, tally);
  };
  each(states, (state) => add(state.pod.metadata?.namespace ?? "", one(state, facts)));
  for (const { namespace } of gone) add(namespace, { ...NO_PODS, left: 1 });
  for (const { namespace } of restarts) add(namespace, { ...NO_PODS, left: 1, restarts: 1 });
  return tallies;
}

function sum(a: Tally, b: Tally): Tally {
  return {
    pods: a.pods + b.pods,
    updated: a.updated + b.updated,
    updatedReady: a.updatedReady + b.updatedReady,
    left: a.left + b.left,
    restarts: a.restarts + b.restarts,
    waiting: a.waiting + b.waiting,
  };
}

function one(state: PodState, facts: TallyFacts): Tally {
  const { isUpdated, isConsistent, isReady } = state;
  return {
    pods: 1,
    updated: isUpdated ? 1 : 0,
    updatedReady: isUpdated && isConsistent && isReady ? 1 : 0,
    left: isLeft(state, facts) ? 1 : 0,
    restarts: 0,
    waiting: classify(state, facts.sidecarSet, facts.replacement) === "waiting" ? 1 : 0,
  };
}

/** What is reserved may be written to at any moment, whatever it looks like. */
function isLeft(state: PodState, { sidecarSet, replacement }: TallyFacts): boolean {
  if (state.isReservedNow === true) return true;
  if (state.isUpdated) return !isThrough(state, sidecarSet);
  const podClass = classify(state, sidecarSet, replacement);
  // Where replacing has stopped, what it is to reach yet keeps the waves behind it.
  if (podClass === "notUpgradable") return replacement?.wants(state.pod) === true;
  return podClass === "waiting" || podClass === "inFlight";
}

/** Of an updated pod: nothing of its update is left to be done, or to be waited for. */
function isThrough(state: PodState, sidecarSet: SidecarSet): boolean {
  const isUp = (state.isConsistent && state.isReady) || state.isIgnored === true;
  return isUp && !canFlip(state.pod, sidecarSet) && (state.resize === undefined || state.resize.step === "none");
}
