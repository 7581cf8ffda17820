/** The view's reports about trouble. Nothing here runs while the API server answers in time. */
import { ANNOUNCEMENTS_CONFIG_MAP } from "../../api/names.ts";
import type { Admission } from "../../core/admission/admission.ts";
import type { Log } from "../../log.ts";
import type { Announced } from "./announced.ts";
import { PATIENCE_MS, SLOW_MS, STALE_WORDS } from "./announcements.ts";

/** The reason why SidecarSets are listed for each pod, and not known by announcements. */
export type Unannounced = "registration" | "notice" | "settling";

export interface Trouble {
  /** time at which it was last seen, or looked for */
  readonly seen: { readonly wall: number; readonly steady: number };
  /** milliseconds after it for which no caller waits */
  readonly restMs: number;
  readonly because: unknown;
  /** True: there was no answer, so even a caller without a known state does not wait. */
  readonly isSilent: boolean;
  /** True: the trouble was longer than a moment, and the log has it. */
  readonly isSaid: boolean;
}

interface Troubled {
  readonly log: Pick<Log, "info" | "warn"> | undefined;
  readonly kind: string | undefined;
  trouble: Trouble | undefined;
  moment(): Trouble["seen"];
}

/** The API server's answer at the last reading for which a caller waited. */
export type Answering = "in time" | "with errors" | "late" | "never";

export function answeringOf({ trouble }: Pick<Troubled, "trouble">): Answering {
  if (trouble === undefined) return "in time";
  if (!trouble.isSaid) return "with errors";
  return trouble.isSilent ? "never" : "late";
}

/** Factor of a failed reading's duration for which no caller waits afterwards, up to this limit. */
const REST_FACTOR = 5;
const MAX_REST_MS = 5_000;
const LATE = "the API server does not answer in time: admissions go by what is known, and one waits now and then";

/**
 * Records a reading that failed or was late. The log gets the start of any trouble longer than a moment. @param
 * lateAfterMs how long the caller waited in vain; 0: there was an answer @returns the reason for callers who are served
 * an older state or refused
 */
export function beginTrouble(breaker: Troubled, cause: unknown, afterMs: number, lateAfterMs: number): unknown {
  const { trouble: before, log, kind } = breaker;
  const tookMs = Math.max(afterMs, lateAfterMs);
  const late = `the API server has not answered within ${lateAfterMs / 1_000} s`;
  const because = lateAfterMs > 0 ? new Error(late) : cause;
  const isSlow = tookMs >= SLOW_MS;
  const wasSaid = before?.isSaid === true;
  if (isSlow && !wasSaid) log?.warn(LATE, { kind, error: because });
  const restMs = Math.min(tookMs * REST_FACTOR, MAX_REST_MS);
  // A second without an answer adds nothing to the earlier cause.
  const isShort = lateAfterMs > 0 && lateAfterMs < PATIENCE_MS;
  const isSilent = isShort ? before?.isSilent === true : isSlow;
  breaker.trouble = { seen: breaker.moment(), restMs, because, isSilent, isSaid: wasSaid || isSlow };
  return because;
}

/** Records a successful reading, with or without waiting callers. A reading in time ends the trouble. */
export function endTrouble(breaker: Troubled, tookMs: number): void {
  const { trouble, log, kind } = breaker;
  if (trouble === undefined) return;
  breaker.trouble = tookMs >= SLOW_MS ? { ...trouble, isSilent: false } : undefined;
  if (breaker.trouble === undefined && trouble.isSaid) log?.info("the API server answers in time again", { kind });
}

/** The warning about a state that is older than allowed. */
export function doubtOf(what: string, because: unknown): string {
  const reason = because instanceof Error ? because.message : String(because);
  return `${STALE_WORDS} ${what}, which cannot be read now: ${reason}`;
}

export function addDoubts(admission: Admission, doubts: readonly string[]): Admission {
  if (admission.kind === "denied") return admission;
  return { ...admission, warnings: [...(admission.warnings ?? []), ...[...new Set(doubts)].toSorted()] };
}

/**
 * True if announcements were ignored because they claim to replace a version that never existed. The log names them.
 */
export function ignoresImpossible(announced: Announced, version: string, { now, log }: Says): boolean {
  const names = announced.ignoreImpossible(version, now());
  const sidecarSets = [...new Set(names)].slice(0, MAX_NAMES);
  if (names.length > 0) log?.warn("announcements of writes that cannot be are ignored", { sidecarSets });
  return names.length > 0;
}

const MAX_NAMES = 8;

interface Says {
  readonly now: () => number;
  readonly log?: Troubled["log"];
}

/** The log's last line about the source of SidecarSets. `why`: absent if announcements are the source */
export interface LoggedSource {
  readonly why: Unannounced | undefined;
  readonly at: number;
}

/** Milliseconds between two lines: alternating causes would fill the log, and a lasting cause is logged in any case. */
const SAY_AGAIN_MS = 10_000;

/** Logs the present source of SidecarSets. `last`: absent: not logged yet */
export function saySource(
  last: LoggedSource | undefined,
  why: Unannounced | undefined,
  { steady, log }: SaysWhen,
): LoggedSource {
  const at = steady?.() ?? performance.now();
  if (last !== undefined && at - last.at < SAY_AGAIN_MS) return last;
  if (why === undefined) log?.info("SidecarSets are known by announcements: pods wait for no list");
  else log?.info("SidecarSets are listed for each pod, or for all that come meanwhile", { because: BECAUSE[why] });
  return { why, at };
}

interface SaysWhen {
  readonly steady?: () => number;
  readonly log?: Troubled["log"];
}

const BECAUSE: Readonly<Record<Unannounced, string>> = {
  registration: "the registration does not announce every write of a SidecarSet",
  notice: `the ConfigMap ${ANNOUNCEMENTS_CONFIG_MAP} is not there, or may not be read`,
  settling: "the registration, or the ConfigMap, was changed in the last minutes",
};
