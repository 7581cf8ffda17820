/** Takes one SidecarSet as far as the time allows: a first round, then one round after the other as its pods come back. */
import type { Summary } from "../core/decide.ts";
import { type Look, lookAt, type RolloutContext, readSidecarSet } from "./look.ts";
import { openPodFeed, type PodFeed } from "./pod-feed.ts";
import type { Stop } from "./report.ts";
import { type RoundResult, round } from "./round.ts";

/** News come in bursts; a round takes what has come within this time. */
const GATHER_MS = 500;
/** Where no watch is to be had, lists take its place. */
const RELIST_MS = 5_000;
/** What is reserved is looked after this soon, whether or not there is news: it was written to, or could not be. */
const RETRY_MS = 1_000;
/** Without news of pods the SidecarSet is read again this often: a new image or a pause takes effect at once. */
const RECHECK_MS = 2_000;
/** Without any progress for this long the rest is left to a later pass: waiting costs as much as working. */
const IDLE_MS = 60_000;
/** Kept for the last writes before the time is up. */
const RESERVE_MS = 2_000;
const MAX_RESTARTS = 8;
const RESTART_MS = 100;

/** Where a rollout stands after its last round. */
export interface Progress {
  readonly look: Look;
  readonly result: RoundResult;
}

export interface Limits {
  /** on the pass's clock */
  readonly endsAtMs: number;
  readonly signal?: AbortSignal;
}

/** The first round. A Stop instead when there is nothing to go on with. Throws what cannot be handled. */
export function beginRollout(context: RolloutContext, name: string): Promise<Progress | Stop> {
  return runRound(context, name, undefined);
}

interface Following {
  progress: Progress;
  /** opened when there is something to wait for */
  feed?: PodFeed | undefined;
  /** when anything last came nearer to the end */
  movedAtMs: number;
}

/** Rounds until nothing is left to do, or the time nears its end. */
export async function followRollout(
  context: RolloutContext,
  first: Progress,
  limits: Limits,
): Promise<{ readonly stop: Stop; readonly progress: Progress }> {
  const following: Following = { progress: first, movedAtMs: context.clock.now() };
  try {
    for (;;) {
      const stop = await step(context, following, limits);
      if (stop) return { stop, progress: following.progress };
    }
  } finally {
    following.feed?.close();
  }
}

async function step(context: RolloutContext, following: Following, limits: Limits): Promise<Stop | undefined> {
  const { progress, movedAtMs } = following;
  const stop = stopOf(progress.result) ?? stopByTime(context.clock.now(), movedAtMs, limits);
  if (stop) return stop;
  following.feed ??= openFeed(context, progress.look);
  const { feed } = following;
  if (!feed) return "settled";
  const look = await nextLook(context, progress, feed, limits);
  if (look === "quiet") return undefined;
  const next = await runRound(context, progress.look.sidecarSet.metadata?.name ?? "", look);
  if (typeof next === "string") return next;
  if (next.look !== progress.look) {
    feed.close();
    following.feed = undefined;
  }
  if (hasMoved(progress, next)) following.movedAtMs = context.clock.now();
  following.progress = next;
  return undefined;
}

/** Frees what is seen to be through and writes the status as it is now, when the last round wrote to pods. */
export async function settleRollout(context: RolloutContext, progress: Progress): Promise<Progress> {
  if (progress.result.written === 0) return progress;
  const result = await round(context, progress.look, "record");
  // Somebody else is at it; what they see is newer.
  return result ? { look: progress.look, result } : progress;
}

/** A round on `look`, or on a new look when there is none or the old one does not hold any more. */
async function runRound(context: RolloutContext, name: string, look: Look | undefined): Promise<Progress | Stop> {
  let current = look;
  for (let attempt = 1; attempt <= MAX_RESTARTS; attempt++) {
    current ??= await lookAt(context, name);
    if (!current) return "gone";
    const result = await round(context, current, "act");
    if (result) return { look: current, result };
    current = undefined;
    context.tally.restarts++;
    await context.clock.sleep(RESTART_MS * attempt * (0.5 + context.clock.random()));
  }
  return "contention";
}

function openFeed(context: RolloutContext, { observed }: Look): PodFeed | undefined {
  const { resourceVersion, scope } = observed;
  return resourceVersion === undefined ? undefined : openPodFeed(context, scope, resourceVersion);
}

/** What to decide on next; undefined: look anew. "quiet": nothing changed. */
async function nextLook(
  context: RolloutContext,
  { look, result }: Progress,
  feed: PodFeed,
  limits: Limits,
): Promise<Look | undefined | "quiet"> {
  const { clock, cluster } = context;
  const leftMs = limits.endsAtMs - RESERVE_MS - clock.now();
  await feed.wait(Math.max(0, Math.min(leftMs, result.reserved > 0 ? RETRY_MS : RECHECK_MS)), limits.signal);
  await clock.sleep(GATHER_MS, limits.signal);
  if (!(await feed.wait(0))) {
    await clock.sleep(RELIST_MS, limits.signal);
    return undefined;
  }
  const isQuiet = feed.applyTo(look.observed.view) === 0 && result.reserved === 0;
  const sidecarSet = await readSidecarSet(cluster, look.sidecarSet.metadata?.name ?? "");
  const isSame =
    sidecarSet?.metadata?.uid === look.sidecarSet.metadata?.uid &&
    sidecarSet?.metadata?.generation === look.sidecarSet.metadata?.generation;
  if (!sidecarSet || !isSame) return undefined;
  if (isQuiet) return "quiet";
  look.sidecarSet = sidecarSet;
  return look;
}

function stopOf({ decision, reserved }: RoundResult): Stop | undefined {
  return reserved > 0 || isUnderWay(decision.summary) ? undefined : "settled";
}

function isUnderWay({ hold, updated, updatedReady, used, selected }: Summary): boolean {
  if (hold === "paused" || hold === "NotUpdate") return false;
  return selected > 0 || used > 0 || updated > updatedReady;
}

function stopByTime(nowMs: number, movedAtMs: number, { endsAtMs, signal }: Limits): Stop | undefined {
  if (signal?.aborted) return "aborted";
  if (nowMs >= endsAtMs - RESERVE_MS) return "deadline";
  return nowMs - movedAtMs >= IDLE_MS ? "stalled" : undefined;
}

function hasMoved(before: Progress, after: Progress): boolean {
  const a = before.result.decision.summary;
  const b = after.result.decision.summary;
  return a.updated !== b.updated || a.updatedReady !== b.updatedReady || a.matched !== b.matched;
}
