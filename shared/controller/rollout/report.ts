/** The report of a pass: what it did, and why not more, as data that prints as JSON. */
import type { SidecarSetStatus } from "../../api/sidecarset.ts";
import type { HoldCause } from "../../core/rollout/causes.ts";
import type { RolloutVerdict } from "../../core/rollout/conditions/verdict.ts";
import type { PassFailure } from "../../core/rollout/pass-trouble.ts";
import type { RolloutPlan } from "../../core/rollout/plan/planned-step.ts";
import type { PodProblem, Summary } from "../../core/rollout/summary.ts";
import type { Calls } from "../loop/metered.ts";

/** Counts of one SidecarSet in one pass. */
export interface Tally {
  /** times that pods were looked at and a decision was made */
  rounds: number;
  /** rounds that wrote to pods */
  batches: number;
  upgraded: number;
  flipped: number;
  fenced: number;
  /** conditional writes that found another state than they were made for */
  conflicts: number;
  /** how the SidecarSet was put back */
  undone?: string;
  /** pods that missed their sidecars and were evicted */
  evicted?: number;
  /** pods that could not be upgraded in place and were evicted */
  replaced?: number;
  /** workloads that were restarted */
  restarted?: number;
  /** times that everything was read again because somebody else wrote the ledger or the SidecarSet */
  restarts: number;
  /** notifications that receivers have taken */
  notified?: number;
  /** why one was not taken, or could not be marked as taken; it is sent again */
  notificationProblem?: string;
  readonly problems: PodProblem[];
}

export function newTally(): Tally {
  return { rounds: 0, batches: 0, upgraded: 0, flipped: 0, fenced: 0, conflicts: 0, restarts: 0, problems: [] };
}

/** Why a pass left a SidecarSet. */
export type Stop =
  /** nothing is left to do for now: all updated and ready, or held by its strategy */
  | "settled"
  /** one batch was asked for, no following */
  | "oneRound"
  | "deadline"
  /** nothing moved for a while; a later pass goes on */
  | "stalled"
  /** nothing is left to wait for but pods that are down and have not changed for five minutes; a later pass looks again */
  | "unchanged"
  | "aborted"
  | "gone"
  /** every write to the pods that are next was refused again and again; a later pass tries again */
  | "refused"
  /** others wrote to the same objects again and again */
  | "contention"
  | "failed";

/** Stops that need attention, whatever the state of the SidecarSet says: its pass did not come to a decision, or to a write. */
export const GRAVE_STOPS = ["failed", "refused", "contention"] as const satisfies readonly Stop[];

export function isGraveStop(stop: Stop): boolean {
  return GRAVE_STOPS.some((grave) => grave === stop);
}

export interface MissedReport {
  readonly count: number;
  /** made within the last ten minutes: an alarm counts these, so that old ones do not hide new ones */
  readonly recent: number;
  /** some of them, as `namespace/name` */
  readonly pods: readonly string[];
}

export interface SidecarSetReport {
  readonly name: string;
  readonly stop: Stop;
  /** one sentence */
  readonly why: string;
  readonly generation?: number;
  readonly status?: SidecarSetStatus;
  readonly summary?: Summary;
  /** where the rollout stands, as its condition Ready says */
  readonly state?: RolloutVerdict;
  /** RFC3339: since when the state needs attention; absent: it does not, or the definition keeps no conditions */
  readonly troubleSince?: string;
  /** what holds the rollout, as docs/reasons.md calls it; absent: nothing was decided, and nobody knows why */
  readonly cause?: HoldCause;
  readonly tally: Tally;
  /** why the pass did not come to a decision; absent: it did, or had no time */
  readonly failure?: PassFailure;
  /** pods that were made without the sidecars; absent: it could not be found out */
  readonly missed?: MissedReport;
  /** dry run: what would be done now */
  readonly planned?: readonly string[];
  /** dry run of one SidecarSet: how it would go on until the end */
  readonly plan?: RolloutPlan;
}

/** Pods whose containers start in an order, in one pass. */
export interface LaunchReport {
  /** priorities that were opened, one pod's each */
  opened: number;
  /** pods of which nothing is held back any more */
  completed: number;
  /** pods that were left waiting for containers */
  waiting: number;
  /** some of them */
  waitingPods: readonly string[];
  /** dry run: what would be done now */
  planned?: readonly string[];
}

/** Why a notification was not taken, with its SidecarSet; undefined: none was refused. */
export function untoldText({ name, tally }: Pick<SidecarSetReport, "name" | "tally">): string | undefined {
  const { notificationProblem } = tally;
  return notificationProblem === undefined ? undefined : `SidecarSet ${name}: ${notificationProblem}`;
}

/** Problems but for notifications that nobody took: those are sent again, and the pass did what there was to do. */
export function gravesOf({ problems, sidecarSets }: Pick<PassReport, "problems" | "sidecarSets">): readonly string[] {
  const untold = new Set(sidecarSets.map(untoldText));
  return problems.filter((problem) => !untold.has(problem));
}

/** Jobs whose sidecars were ended in one pass. */
export interface TerminationReport {
  /** pods that were given their final phase */
  finished: number;
  /** containers that were given an image that ends */
  swapped: number;
  /** pods of jobs whose sidecars run on, since only a final phase could end them */
  left: number;
  /** dry run: what would be done now */
  planned?: readonly string[];
}

/** Pods that wait for the readiness gate of KruisePodReadinessGate, in one pass. */
export interface ReadinessReport {
  /** pods that were given the condition */
  opened: number;
  /** dry run: what would be done now */
  planned?: readonly string[];
}

/** ContainerRecreateRequests in one pass. */
export interface RecreationReport {
  /** that there are */
  requests: number;
  /** containers that were given their image in another way */
  recreated: number;
  /** requests that ended, one way or the other: their message says which */
  completed: number;
  /** requests whose turn has not come */
  waiting: number;
  /** dry run: what would be done now */
  planned?: readonly string[];
}

/** The registration of the pod webhook, where it is kept up to date. */
export interface RegistrationReport {
  /** what API servers ask the webhook, from now on */
  readonly asks: "about every pod" | "about pods that SidecarSets match";
  /** false also when somebody else wrote it meanwhile */
  readonly isChanged: boolean;
  /** dry run: what would be done now */
  readonly planned?: readonly string[];
}

export interface PassReport {
  /** RFC3339 */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly isDryRun: boolean;
  /** set when another pass is at work and this one left everything to it */
  readonly heldBy?: string;
  /** trouble that concerns no SidecarSet in particular */
  readonly problems: readonly string[];
  /** set when SidecarSets could not even be listed, so that nothing was done about them: why */
  readonly failure?: string;
  readonly sidecarSets: readonly SidecarSetReport[];
  /** SidecarSets that the time did not suffice for */
  readonly notReached: readonly string[];
  /** SidecarSets that had most of the time, which was over before their pods were read */
  readonly unread: readonly string[];
  /** SidecarSets whose passes fail, with the time (RFC3339) since when their status says so, or `unknown` where it cannot */
  readonly failing?: Readonly<Record<string, string>>;
  /** pods whose containers start in an order; absent: not looked for */
  readonly launches?: LaunchReport;
  /** absent: the cluster has no ContainerRecreateRequests, or they were not looked for */
  readonly recreations?: RecreationReport;
  /** absent: gate SidecarTerminator is off */
  readonly terminations?: TerminationReport;
  /** absent: gate KruisePodReadinessGate is off */
  readonly readiness?: ReadinessReport;
  /** absent: it is not kept up to date, or there is none */
  readonly registration?: RegistrationReport;
  /** API calls, such as "PATCH pods": 12 */
  readonly calls: Calls;
}

/** The same trouble of a pod is told once a pass. */
export function noteProblem(
  { tally }: { readonly tally: Pick<Tally, "problems"> },
  { namespace, name }: Pick<PodProblem, "namespace" | "name">,
  message: string,
): void {
  const isKnown = tally.problems.some(
    (known) => known.namespace === namespace && known.name === name && known.message === message,
  );
  if (!isKnown) tally.problems.push({ namespace, name, message });
}
