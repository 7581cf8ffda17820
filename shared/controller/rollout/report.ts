/** The report of a pass: its actions, and the reasons to do no more, as data that prints as JSON. */
import type { SidecarSetStatus } from "../../api/sidecarset.ts";
import type { RolloutVerdict } from "../../core/rollout/conditions/verdict.ts";
import type { RolloutCause } from "../../core/rollout/hold.ts";
import type { PassFailure } from "../../core/rollout/pass-trouble.ts";
import type { RolloutPlan } from "../../core/rollout/plan/planned-step.ts";
import type { PodProblem, Summary } from "../../core/rollout/summary.ts";
import type { Calls } from "../loop/metered.ts";

/** Counts of one SidecarSet in one pass. */
export interface Tally {
  /** number of rounds: each observes pods and decides */
  rounds: number;
  /** number of rounds that wrote to pods */
  batches: number;
  upgraded: number;
  flipped: number;
  fenced: number;
  /** number of conditional writes that found another state than expected */
  conflicts: number;
  /** how the SidecarSet was restored */
  undone?: string;
  /** number of evicted pods that had missed their sidecars */
  evicted?: number;
  /** number of evicted pods that could not be upgraded in place */
  replaced?: number;
  /** number of restarted workloads */
  restarted?: number;
  /** number of new readings because somebody else wrote the ledger or the SidecarSet */
  restarts: number;
  /** number of notifications that receivers have accepted */
  notified?: number;
  /** the reason why one was not accepted, or could not be marked as accepted; it is sent again */
  notificationProblem?: string;
  readonly problems: PodProblem[];
}

export function newTally(): Tally {
  return { rounds: 0, batches: 0, upgraded: 0, flipped: 0, fenced: 0, conflicts: 0, restarts: 0, problems: [] };
}

/** The reason why a pass left a SidecarSet. */
export type Stop =
  /** no work for now: all pods are updated and ready, or held by the strategy */
  | "settled"
  /** the caller asked for one batch only */
  | "oneRound"
  | "deadline"
  /** no progress for a while; a later pass continues */
  | "stalled"
  /** all remaining pods are down and unchanged for five minutes; a later pass looks again */
  | "unchanged"
  | "aborted"
  | "gone"
  /** the API server refused every write to the next pods repeatedly; a later pass tries again */
  | "refused"
  /** others wrote to the same objects repeatedly */
  | "contention"
  | "failed";

/** Ends that need attention in any state of the SidecarSet: its pass made no decision, or no write. */
export const GRAVE_STOPS = ["failed", "refused", "contention"] as const satisfies readonly Stop[];

export function isGraveStop(stop: Stop): boolean {
  return GRAVE_STOPS.some((grave) => grave === stop);
}

export interface MissedReport {
  readonly count: number;
  /** number of pods created within the last ten minutes, which an alarm counts, so that old ones hide no new ones */
  readonly recent: number;
  /** some of the pods, as `namespace/name` */
  readonly pods: readonly string[];
}

export interface SidecarSetReport {
  readonly name: string;
  readonly stop: Stop;
  /** the reason in one sentence */
  readonly why: string;
  readonly generation?: number;
  readonly status?: SidecarSetStatus;
  readonly summary?: Summary;
  /** the state of the rollout, as in its condition Ready */
  readonly state?: RolloutVerdict;
  /** time since which the state needs attention, RFC3339; absent: it does not, or the definition keeps no conditions */
  readonly troubleSince?: string;
  /** the cause of the state, named as in docs/reasons.md, mostly the hold of the rollout; absent: no known cause */
  readonly cause?: RolloutCause;
  readonly tally: Tally;
  /** the reason why the pass made no decision; absent: it made one, or had no time */
  readonly failure?: PassFailure;
  /** pods without the sidecars that they should have; absent: unknown */
  readonly missed?: MissedReport;
  /** for a dry run: the present actions */
  readonly planned?: readonly string[];
  /** for a dry run of one SidecarSet: the plan to the end */
  readonly plan?: RolloutPlan;
}

/** Pods with containers that start in an order, in one pass. */
export interface LaunchReport {
  /** number of opened priorities, counted for each pod */
  opened: number;
  /** number of pods whose containers have all started */
  completed: number;
  /** number of pods that still wait for containers */
  waiting: number;
  /** some of the waiting pods */
  waitingPods: readonly string[];
  /** for a dry run: the present actions */
  planned?: readonly string[];
}

/** The reason why a notification was refused, with its SidecarSet; undefined: none was refused. */
export function untoldText({ name, tally }: Pick<SidecarSetReport, "name" | "tally">): string | undefined {
  const { notificationProblem } = tally;
  return notificationProblem === undefined ? undefined : `SidecarSet ${name}: ${notificationProblem}`;
}

/** Problems without refused notifications, which are sent again. */
export function gravesOf({ problems, sidecarSets }: Pick<PassReport, "problems" | "sidecarSets">): readonly string[] {
  const untold = new Set(sidecarSets.map(untoldText));
  return problems.filter((problem) => !untold.has(problem));
}

/** Jobs whose sidecars one pass has ended. */
export interface TerminationReport {
  /** number of pods that got their final phase */
  finished: number;
  /** number of containers that got an image that ends */
  swapped: number;
  /** number of job pods with running sidecars that only a final phase could end */
  left: number;
  /** for a dry run: the present actions */
  planned?: readonly string[];
}

/** Pods that wait for the readiness gate of KruisePodReadinessGate, in one pass. */
export interface ReadinessReport {
  /** number of pods that got the condition */
  opened: number;
  /** for a dry run: the present actions */
  planned?: readonly string[];
}

/** ContainerRecreateRequests in one pass. */
export interface RecreationReport {
  /** number of requests */
  requests: number;
  /** number of containers that got another spelling of their image */
  recreated: number;
  /** number of ended requests; each message says how it ended */
  completed: number;
  /** number of requests that wait */
  waiting: number;
  /** for a dry run: the present actions */
  planned?: readonly string[];
}

/** The registration of the pod webhook, if passes update it. */
export interface RegistrationReport {
  /** pods that API servers ask the webhook about from now on */
  readonly asks: "about every pod" | "about pods that SidecarSets match";
  /** true: this pass changed it; false also if somebody else wrote it */
  readonly isChanged: boolean;
  /** for a dry run: the present actions */
  readonly planned?: readonly string[];
}

export interface PassReport {
  /** start of the pass, RFC3339 */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly isDryRun: boolean;
  /** set if another pass was running, so that this one did nothing */
  readonly heldBy?: string;
  /** trouble that concerns no single SidecarSet */
  readonly problems: readonly string[];
  /** the reason why SidecarSets could not be listed; nothing was then done about them */
  readonly failure?: string;
  readonly sidecarSets: readonly SidecarSetReport[];
  /** SidecarSets that this pass had no time for */
  readonly notReached: readonly string[];
  /** SidecarSets that had most of the pass's time, although their pods could not all be read */
  readonly unread: readonly string[];
  /** SidecarSets with failing passes, and the time (RFC3339) since when their status says so, or `unknown` */
  readonly failing?: Readonly<Record<string, string>>;
  /** pods with a launch order; absent: the pass did not look for them */
  readonly launches?: LaunchReport;
  /** requests; absent: the cluster has no ContainerRecreateRequests, or the pass did not look for them */
  readonly recreations?: RecreationReport;
  /** ended sidecars; absent: gate SidecarTerminator is off */
  readonly terminations?: TerminationReport;
  /** opened readiness gates; absent: gate KruisePodReadinessGate is off */
  readonly readiness?: ReadinessReport;
  /** registration; absent: passes do not update it, or it does not exist */
  readonly registration?: RegistrationReport;
  /** numbers of API calls, such as "PATCH pods": 12 */
  readonly calls: Calls;
}

/** Records the same trouble of a pod once in a pass. */
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
