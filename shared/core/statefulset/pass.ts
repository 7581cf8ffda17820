/** The state of one pass over a set: what it knows, and what it has done. */
import type { ControllerRevision, Pod, PodCondition } from "../../api/kubernetes.ts";
import type { StatefulSet } from "../../api/stateful-set.ts";
import type { OrdinalRange } from "./pods/ordinals.ts";
import { secondsUntilAvailable } from "./pods/pod-phase.ts";
import type { StatefulSetFeatureGates } from "./step.ts";

export interface Pass {
  readonly set: StatefulSet;
  /** the set with the template of either revision */
  readonly currentSet: StatefulSet;
  readonly updateSet: StatefulSet;
  readonly current: ControllerRevision;
  readonly update: ControllerRevision;
  /** as it was listed, oldest first */
  readonly history: readonly ControllerRevision[];
  /** the set's pods, as they were listed */
  readonly pods: readonly Pod[];
  /** by ordinal from the start of the range: listed or constructed pods, undefined for a reserved ordinal */
  readonly slots: readonly (Pod | undefined)[];
  /** pods out of range, highest ordinal first */
  readonly condemned: readonly Pod[];
  readonly range: OrdinalRange;
  readonly gates: StatefulSetFeatureGates;
  /** uids of pods that an earlier write may still reach: each counts as unavailable */
  readonly reserved: ReadonlySet<string>;
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  /** one pod after the other */
  readonly isMonotonic: boolean;
  readonly minReadySeconds: number;
  readonly progress: Progress;
}

/** The changing part of a pass. */
export interface Progress {
  /** number of pods that scaling may still make unavailable; undefined: no limit */
  scaleBudget: number | undefined;
  /** subtracted from the counters of the status for updates that began */
  currentReplicasLost: number;
  updatedReplicasLost: number;
  readonly conditions: PodCondition[];
  /** uids of pods that were written since they were listed */
  readonly written: Set<string>;
  /** uids of deleted pods among them */
  readonly deleted: Set<string>;
  /** seconds until the next look */
  readonly waits: number[];
}

export function newProgress(): Progress {
  return {
    scaleBudget: undefined,
    currentReplicasLost: 0,
    updatedReplicasLost: 0,
    conditions: [],
    written: new Set(),
    deleted: new Set(),
    waits: [],
  };
}

/** Takes one pod from the scale budget, if there is one; true when the budget is used up. */
export function isScaleBudgetSpent({ progress }: Pass): boolean {
  if (progress.scaleBudget === undefined) return false;
  progress.scaleBudget--;
  return progress.scaleBudget <= 0;
}

/** OpenKruise MaxMinReadySeconds. */
const LONGEST_WAIT = 300;

/**
 * A pod that only needs time is looked at again when that is over.
 * Compat: but not if that takes longer than a set may ask for (OpenKruise rollingUpdateStatefulsetPods).
 */
export function isAvailable({ minReadySeconds, now, progress }: Pass, pod: Pod): boolean {
  const seconds = secondsUntilAvailable(pod, minReadySeconds, now);
  if (seconds && seconds <= LONGEST_WAIT) progress.waits.push(seconds);
  return seconds === 0;
}
