/** Decides what one pass does for one SidecarSet, from what was observed: a list of the reference's steps, as data. */
import type { ControllerRevision, Pod } from "../api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../api/sidecarset.ts";
import type { Action } from "./lib/action.ts";

export interface Observation {
  /** v1beta1, as read at the beginning of the pass */
  readonly sidecarSet: SidecarSet;
  /** selected by spec.selector and namespaceSelector, namespaces in sorted order, each through `projectPod` */
  readonly pods: readonly Pod[];
  /** of the kruise namespace, by label kruise.io/sidecarset-name */
  readonly revisions: readonly ControllerRevision[];
  /** found under a name that CreateRevision asked for, after AlreadyExists */
  readonly taken: readonly ControllerRevision[];
  /** uids of pods that hold a reservation: they use budget although still seen not updated */
  readonly reserved: ReadonlySet<string>;
}

export interface DecideContext {
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  readonly kruiseNamespace: string;
}

/** Why a pass does no more than it does. */
export type Hold =
  | "paused"
  | "NotUpdate"
  /** every matched pod is updated */
  | "finished"
  /** hot upgrades are flipped first, new ones begin in the next pass */
  | "flip"
  /** every pod that waits is kept by the partition */
  | "partition"
  /** pods wait for others to become ready */
  | "budget"
  /** no pod waits: the old ones are in flight, not selected or not upgradable */
  | "nothingWaits"
  /** everything that may be upgraded is being upgraded by this decision */
  | "none";

/** A pod that could not be handled; it is left alone, the others are not held up by it. */
export interface PodProblem {
  readonly namespace: string;
  readonly name: string;
  readonly message: string;
}

/** Counts of pods, for the report. */
export interface Summary {
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  readonly updatedReady: number;
  /** may be upgraded in place, before partition and budget */
  readonly waiting: number;
  readonly notUpgradable: number;
  /** old pods that stay because of the partition */
  readonly partition: number;
  readonly maxUnavailable: number;
  /** updated pods that are down, and reserved ones */
  readonly used: number;
  /** pods that this decision upgrades or flips */
  readonly selected: number;
  readonly hold: Hold;
  readonly problems: readonly PodProblem[];
}

export interface Decision {
  /** in the order in which they are to be carried out */
  readonly actions: readonly Action[];
  /** as observed, whether or not it has to be written */
  readonly status: SidecarSetStatus;
  readonly summary: Summary;
}

/** Pure: the same observation and `now` give the same decision. Never throws for what a user can write into objects. */
export function decide(observation: Observation, _context: DecideContext): Decision {
  const { pods } = observation;
  const status = { matchedPods: pods.length, updatedPods: 0, readyPods: 0, collisionCount: 0 };
  const summary: Summary = {
    matched: pods.length,
    updated: 0,
    ready: 0,
    updatedReady: 0,
    waiting: 0,
    notUpgradable: 0,
    partition: 0,
    maxUnavailable: 1,
    used: 0,
    selected: 0,
    hold: "none",
    problems: [],
  };
  return { actions: [], status, summary };
}
