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
  /** revisions as they were listed, oldest first */
  readonly history: readonly ControllerRevision[];
  /** the set's pods, as they were listed */
  readonly pods: readonly Pod[];
  /** pods by ordinal from the start of the range, listed or constructed; undefined for a reserved ordinal */
  readonly slots: readonly (Pod | undefined)[];
  /** pods out of range, highest ordinal first */
  readonly condemned: readonly Pod[];
  readonly range: OrdinalRange;
  readonly gates: StatefulSetFeatureGates;
  /** uids of pods that an earlier write may still change; each counts as unavailable */
  readonly reserved: ReadonlySet<string>;
  /** the present time: RFC3339, whole seconds, UTC */
  readonly now: string;
  /** true: pods are handled one after another */
  readonly isMonotonic: boolean;
  readonly minReadySeconds: number;
  readonly progress: Progress;
}

/** The changing part of a pass. */
export interface Progress {
  /** number of pods that scaling may still make unavailable; undefined: no limit */
  scaleBudget: number | undefined;
  /** numbers to subtract from the status's counters for updates that began */
  currentReplicasLost: number;
  updatedReplicasLost: number;
  readonly conditions: PodCondition[];
  /** uids of pods that were written after they were listed */
  readonly written: Set<string>;
  /** uids of deleted pods among the written ones */
  readonly deleted: Set<string>;
  /** times until the next look, in seconds */
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

/** Takes one pod from the scale budget, if there is one. True if the budget is used up. */
export function isScaleBudgetSpent({ progress }: Pass): boolean {
  if (progress.scaleBudget === undefined) return false;
  progress.scaleBudget--;
  return progress.scaleBudget <= 0;
}

/** OpenKruise MaxMinReadySeconds. */
const LONGEST_WAIT = 300;

/**
 * True if the pod is available. A pod that only needs time gets another look after this time. Compat: not if that takes
 * longer than a set may ask for (OpenKruise rollingUpdateStatefulsetPods).
 */
export function isAvailable({ minReadySeconds, now, progress }: Pass, pod: Pod): boolean {
  const seconds = secondsUntilAvailable(pod, minReadySeconds, now);
  if (seconds && seconds <= LONGEST_WAIT) progress.waits.push(seconds);
  return seconds === 0;
}
