/** The report of a pass: what it did, and why not more, as data that prints as JSON. */
import type { SidecarSetStatus } from "../../api/sidecarset.ts";
import type { RolloutVerdict } from "../../core/rollout/conditions/verdict.ts";
import type { RolloutCause } from "../../core/rollout/hold.ts";
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
  /** number of new readings because somebody else wrote the ledger or the SidecarSet */
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
  /** nothing to do for now: all updated and ready, or held by the strategy */
  | "settled"
  /** one batch was asked for, no following */
  | "oneRound"
  | "deadline"
  /** nothing moved for a while; a later pass continues */
  | "stalled"
  /** only pods are left that are down and unchanged for five minutes; a later pass looks again */
  | "unchanged"
  | "aborted"
  | "gone"
  /** the API server refused every write to the next pods repeatedly; a later pass tries again */
  | "refused"
  /** others wrote to the same objects repeatedly */
  | "contention"
  | "failed";

/** Ends that need attention, whatever the state of the SidecarSet: its pass reached no decision, or no write. */
export const GRAVE_STOPS = ["failed", "refused", "contention"] as const satisfies readonly Stop[];

export function isGraveStop(stop: Stop): boolean {
  return GRAVE_STOPS.some((grave) => grave === stop);
}

export interface MissedReport {
  readonly count: number;
  /** created within the last ten minutes: an alarm counts these, so that old ones do not hide new ones */
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
  /** the state of the rollout, as in its condition Ready */
  readonly state?: RolloutVerdict;
  /** RFC3339: since when the state needs attention; absent: it does not, or the definition keeps no conditions */
  readonly troubleSince?: string;
  /** what makes the state, named as in docs/reasons.md, mostly what holds the rollout; absent: no decision and no known reason */
  readonly cause?: RolloutCause;
  readonly tally: Tally;
  /** why the pass did not come to a decision; absent: it did, or had no time */
  readonly failure?: PassFailure;
  /** pods created without the sidecars; absent: unknown */
  readonly missed?: MissedReport;
  /** dry run: the current actions */
  readonly planned?: readonly string[];
  /** dry run of one SidecarSet: the forecast to the end */
  readonly plan?: RolloutPlan;
}

/** Pods whose containers start in an order, in one pass. */
export interface LaunchReport {
  /** priorities that were opened, one pod's each */
  opened: number;
  /** number of pods whose containers have all started */
  completed: number;
  /** pods that were left waiting for containers */
  waiting: number;
  /** some of them */
  waitingPods: readonly string[];
  /** dry run: the current actions */
  planned?: readonly string[];
}

/** Why a notification was not taken, with its SidecarSet; undefined: none was refused. */
export function untoldText({ name, tally }: Pick<SidecarSetReport, "name" | "tally">): string | undefined {
  const { notificationProblem } = tally;
  return notificationProblem === undefined ? undefined : `SidecarSet ${name}: ${notificationProblem}`;
}

/** Problems except notifications that no receiver took: those are sent again. */
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
  /** pods of jobs with running sidecars that only a final phase could end */
  left: number;
  /** dry run: the current actions */
  planned?: readonly string[];
}

/** Pods that wait for the readiness gate of KruisePodReadinessGate, in one pass. */
export interface ReadinessReport {
  /** pods that were given the condition */
  opened: number;
  /** dry run: the current actions */
  planned?: readonly string[];
}

/** ContainerRecreateRequests in one pass. */
export interface RecreationReport {
  /** number of requests */
  requests: number;
  /** containers that were given their image in another way */
  recreated: number;
  /** number of ended requests: each message says how */
  completed: number;
  /** number of requests that wait */
  waiting: number;
  /** dry run: the current actions */
  planned?: readonly string[];
}

/** The registration of the pod webhook, where it is kept up to date. */
export interface RegistrationReport {
  /** the pods that API servers ask the webhook about from now on */
  readonly asks: "about every pod" | "about pods that SidecarSets match";
  /** false also when somebody else wrote it meanwhile */
  readonly isChanged: boolean;
  /** dry run: the current actions */
  readonly planned?: readonly string[];
}

export interface PassReport {
  /** RFC3339 */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly isDryRun: boolean;
  /** set when another pass was running and this one did nothing */
  readonly heldBy?: string;
  /** trouble that concerns no SidecarSet in particular */
  readonly problems: readonly string[];
  /** set when SidecarSets could not even be listed, so that nothing was done about them: why */
  readonly failure?: string;
  readonly sidecarSets: readonly SidecarSetReport[];
  /** SidecarSets that the time did not suffice for */
  readonly notReached: readonly string[];
  /** SidecarSets whose pods were not read although they had most of the time */
  readonly unread: readonly string[];
  /** SidecarSets with failing passes, and the time (RFC3339) since when their status says so, or `unknown` */
  readonly failing?: Readonly<Record<string, string>>;
  /** pods with a launch order; absent: not looked for */
  readonly launches?: LaunchReport;
  /** absent: the cluster has no ContainerRecreateRequests, or they were not looked for */
  readonly recreations?: RecreationReport;
  /** absent: gate SidecarTerminator is off */
  readonly terminations?: TerminationReport;
  /** absent: gate KruisePodReadinessGate is off */
  readonly readiness?: ReadinessReport;
  /** absent: not kept up to date, or not registered */
  readonly registration?: RegistrationReport;
  /** API calls, such as "PATCH pods": 12 */
  readonly calls: Calls;
}

/** Notes the same trouble of a pod once a pass. */
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
