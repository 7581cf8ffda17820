/** Decides what a report consists of: everything that the page shows, and nothing of how. */
import type { RolloutVerdict } from "../../rollout/conditions/verdict.ts";
import type { EventLine } from "./event-line.ts";
import type { PodGroup, StandingCounts } from "./groups.ts";
import type { PodStanding } from "./pod-standing.ts";
import type { Batch, Progress } from "./progress.ts";
import type { Reason } from "./reason.ts";
import type { RevisionRow } from "./revision-row.ts";

/** In one word, where a SidecarSet stands. */
export type Verdict =
  /** every pod has the current version and is ready with it */
  | "Done"
  | "Rolling out"
  /** by its strategy: paused, partition, NotUpdate */
  | "Held"
  /** it cannot go on: pods that are down use all of the budget */
  | "Blocked"
  /** it goes on, or is through, and some pods are down, cannot be updated or lack their sidecars */
  | "Degraded"
  /** it matches no pod */
  | "No pods";

/** One SidecarSet, from what is stored of it alone. */
export interface SetRow {
  readonly name: string;
  readonly images: readonly string[];
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  /** absent: no pass has seen its last change yet */
  readonly verdict?: RolloutVerdict;
  /** RFC3339: since when; absent: not known */
  readonly since?: string;
  /** one clause; "" when there is nothing to say */
  readonly remark: string;
}

/** Pods of one batch to come. */
export interface NextBatch {
  /** namespace/name, in the order in which they get their turn */
  readonly pods: readonly string[];
  readonly isFlip: boolean;
}

/** One SidecarSet with its pods. */
export interface SetDetail {
  readonly name: string;
  /** RFC3339: when its pods were read */
  readonly at: string;
  readonly verdict: Verdict;
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
  readonly counts: StandingCounts;
  readonly reasons: readonly Reason[];
  readonly progress: Progress | undefined;
  readonly batches: readonly Batch[];
  readonly next: readonly NextBatch[];
  readonly nodes: readonly PodGroup[];
  readonly namespaces: readonly PodGroup[];
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
  readonly sets: readonly SetRow[];
  /** of all, of one, or of none of `sets` */
  readonly details: readonly SetDetail[];
}
