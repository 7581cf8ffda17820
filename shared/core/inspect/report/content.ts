/** Decides what a report consists of: everything that the page shows, and nothing of how. */
import type { RolloutVerdict } from "../../rollout/conditions/verdict.ts";
import type { Batch } from "./batches.ts";
import type { EventLine } from "./event-line.ts";
import type { PodGroup, StandingCounts } from "./groups.ts";
import type { PodStanding } from "./pod-standing.ts";
import type { Progress } from "./progress.ts";
import type { Reason } from "./reasons.ts";
import type { RevisionRow } from "./revision-row.ts";
import type { SetRow } from "./set-row.ts";

/** Pods of one batch to come. */
export interface NextBatch {
  /** namespace/name, in the order in which they get their turn */
  readonly pods: readonly string[];
  readonly isFlip: boolean;
  readonly isDrain: boolean;
}

/** One SidecarSet with its pods. */
export interface SetDetail {
  readonly name: string;
  /** RFC3339: when its pods were read */
  readonly at: string;
  readonly verdict: RolloutVerdict;
  /** one sentence */
  readonly headline: string;
  readonly images: readonly string[];
  /** such as ["maxUnavailable", "10% (2 pods)"] */
  readonly facts: readonly (readonly [string, string])[];
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  /** are to be updated, as the partition is */
  readonly target: number;
  /** how many may be down at once, in pods, as the strategy is */
  readonly maxUnavailable: number;
  readonly counts: StandingCounts;
  readonly reasons: readonly Reason[];
  readonly progress: Progress | undefined;
  readonly batches: readonly Batch[];
  readonly next: readonly NextBatch[];
  readonly nodes: readonly PodGroup[];
  /** those with pods that need somebody first */
  readonly workloads: readonly PodGroup[];
  readonly pods: readonly PodStanding[];
  readonly revisions: readonly RevisionRow[];
  /** undefined: they cannot be read */
  readonly events: readonly EventLine[] | undefined;
}

export interface ReportContent {
  /** RFC3339: when the cluster was read */
  readonly at: string;
  /** the API server's address or the context's name; "" where it is not known */
  readonly cluster: string;
  /** why nothing goes on at all: no pass runs; undefined: one does, or that is not known */
  readonly idle: Reason | undefined;
  /** absent: they were not asked for */
  readonly sets?: readonly SetRow[];
  /** of all, of one, or of none of `sets` */
  readonly details: readonly SetDetail[];
}
