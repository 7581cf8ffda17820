/** Advances one SidecarSet as far as the time allows: a first round, then another one each time pods recover. */

import type { ObjectMeta, Pod } from "../../api/kubernetes.ts";
import { type Reservation, withoutThese } from "../../core/ledger.ts";
import { isConsistent } from "../../core/pod/is-consistent.ts";
import { isMatched } from "../../core/pod/is-matched.ts";
import { hasChangedLately, isReady } from "../../core/pod/is-ready.ts";
import { sidecarContainerNames } from "../../core/pod/sidecar-containers.ts";
import { isSteeredAlike, type SteeredSidecarSet } from "../../core/pod/steering/steered.ts";
import { HOLDS } from "../../core/rollout/hold.ts";
import { CLOCKED, EFFECTS, isRestarting, nextEnd, waitsForOthers } from "../../core/rollout/hold-effects.ts";
import { type Summary, unavailableOf } from "../../core/rollout/summary.ts";
import { type Ending, withDoing } from "../../doings.ts";
import { isLater } from "../../go/resource-version.ts";
import { where } from "../../go/sequence.ts";
import { about, isKubeError, type KubeError } from "../../kube/error.ts";
import { type Cluster, PODS, type WatchEvent, type WatchOptions } from "../../kube/port.ts";
import { type Clock, type Limits, timestamp } from "../loop/clock.ts";
import { type EventFeed, openFeed } from "../loop/event-feed.ts";
import type { PodView } from "../pod-store/pod-view.ts";
import { attempt, type Outcome, resourceOf } from "./act.ts";
import { serverTimestamp } from "./departures.ts";
import { fencePod } from "./fence-pod.ts";
import { readLedger, swapLedger } from "./ledger-store.ts";
import { type Context, observe, readSame, type Snapshot } from "./observe.ts";
import type { Observed, Scope } from "./observe-pods.ts";
import { fencePatch } from "./pod-patch.ts";
import { isRefusedThroughout } from "./refusals.ts";
import type { Stop } from "./report.ts";
import { type RoundResult, round } from "./round.ts";

/** Milliseconds to collect events. They come in bursts, and a round handles all of them. */
const GATHER_MS = 500;
/** Milliseconds between lists if no watch is possible. */
const RELIST_MS = 5_000;
/**
 * Number of pods in flight above which lists cost less than a watch. A watch sends every pod in flight whole, five
 * times or more; a list sends all pods once, compressed to a twentieth.
 */
const MANY_IN_FLIGHT = 50;
const SHARE_IN_FLIGHT = 1 / 25;
/** Milliseconds between lists. The time grows from the first to the last value while no pod recovers. */
const FIRST_LIST_MS = 1_000;
const LAST_LIST_MS = 5_000;
/** Milliseconds between looks at reserved pods, even without news. */
const RETRY_MS = 1_000;
/** Milliseconds between reads of the SidecarSet without pod events, so that a new image or pause takes effect soon. */
const RECHECK_MS = 2_000;
/** Milliseconds without progress after which a later pass continues: waiting costs as much as working. */
const IDLE_MS = 60_000;
/** Seconds for which a pass waits for a hold that ends by the clock, such as the interval of metric checks. */
const CLOCK_SECONDS = 30;
/** Milliseconds for the last writes, in addition to the decisions of a last round. */
const RESERVE_MS = 2_000;
const LAST_DECISIONS = 3;
const MAX_RESTARTS = 8;
const RESTART_MS = 100;

/** The state of a rollout after its last round. */
export interface Progress {
  readonly snapshot: Snapshot;
  readonly result: RoundResult;
}

/** Runs the first round; a Stop if the rollout cannot continue. Throws errors that it cannot handle. */
export function beginRollout(context: Context, name: string): Promise<Progress | Stop> {
  return runRound(context, name, undefined);
}

interface Following {
  progress: Progress;
  /** feed of events, opened when the rollout waits for pods */
  feed?: PodFeed | undefined;
  /** milliseconds until the next list, without a feed */
  listMs: number;
  /** time of the last progress, on the clock */
  movedAtMs: number;
}

/** Runs rounds until no work is left, or the time nears its end. */
export async function followRollout(
  context: Context,
  first: Progress,
  limits: Limits,
): Promise<{ readonly stop: Stop; readonly progress: Progress }> {
  const following: Following = { progress: first, movedAtMs: context.clock.now(), listMs: FIRST_LIST_MS };
  try {
    for (;;) {
      const stop = await step(context, following, limits);
      if (stop) return { stop, progress: following.progress };
    }
  } finally {
    closeFeed(following);
  }
}

async function step(context: Context, following: Following, limits: Limits): Promise<Stop | undefined> {
  const { progress, movedAtMs } = following;
  const stop =
    stopOf(context, progress) ??
    stopByTime(context.clock.now(), movedAtMs + idleMsOf(progress.result), within(limits, progress.snapshot));
  if (stop) return stop;
  const snapshot = await nextSnapshot(context, following, limits);
  if (snapshot === "quiet") return undefined;
  if (snapshot === "settled") return "settled";
  const next = await runRound(context, progress.snapshot.sidecarSet.metadata?.name ?? "", snapshot);
  if (typeof next === "string") return next;
  if (next.snapshot !== progress.snapshot) closeFeed(following);
  const isMoved = hasMoved(progress, next);
  if (isMoved) following.movedAtMs = context.clock.now();
  following.listMs = isMoved ? FIRST_LIST_MS : Math.min(following.listMs * 1.5, LAST_LIST_MS);
  following.progress = next;
  return undefined;
}

function closeFeed(following: Following): void {
  following.feed?.close();
  following.feed = undefined;
}

/** Frees completed reservations and writes the status, if the last round left some of that. */
export async function settleRollout(context: Context, progress: Progress): Promise<Progress> {
  if (progress.result.written === 0 && !progress.result.isStatusOwed) return progress;
  // With very many pods this decision would end after the platform ends the process. The next pass writes it.
  if (context.clock.now() + (progress.snapshot.decisionMs ?? 0) >= context.endsAtMs) return progress;
  const result = await round(context, progress.snapshot, "record");
  // Another pass has newer data and is running.
  return result ? { snapshot: progress.snapshot, result } : progress;
}

function podsSeen(snapshot: Snapshot | undefined): Ending {
  return { values: { "sidecarset.pods.matched": snapshot?.observed.view.records.length } };
}

/** Runs a round on `snapshot`, or on a new one if there is none or it is outdated. */
async function runRound(context: Context, name: string, snapshot: Snapshot | undefined): Promise<Progress | Stop> {
  let current = snapshot;
  for (let attempt = 1; attempt <= MAX_RESTARTS; attempt++) {
    current ??= await withDoing("look", {}, () => observe(context, name), podsSeen);
    if (!current) {
      await releaseOrphan(context.cluster, context.kruiseNamespace, name);
      return "gone";
    }
    const result = await round(context, current, "act");
    if (result) return { snapshot: current, result };
    current = undefined;
    context.tally.restarts++;
    await context.clock.sleep(RESTART_MS * attempt * (0.5 + context.clock.random()));
  }
  return "contention";
}

/** The next snapshot to decide on; undefined: observe again. "quiet": no change; "settled": no pod to wait for. */
async function nextSnapshot(
  context: Context,
  following: Following,
  limits: Limits,
): Promise<Snapshot | undefined | "quiet" | "settled"> {
  const { snapshot, result } = following.progress;
  if (result.isOutdated) return undefined;
  // All pods with room are written, or another wave begins: the remaining budget need not wait.
  if (result.isMoreToWrite || result.isWaveNext) return onto(snapshot, await readSame(context, snapshot));
  if (isManyInFlight(result)) {
    closeFeed(following);
    await waitOn(context, within(limits, snapshot), following.listMs);
    return undefined;
  }
  following.feed ??= openPodFeed(context, snapshot.observed);
  return following.feed ? await watched(context, following.progress, following.feed, limits) : "settled";
}

async function watched(
  context: Context,
  { snapshot, result }: Progress,
  feed: PodFeed,
  limits: Limits,
): Promise<Snapshot | undefined | "quiet"> {
  const { clock } = context;
  const leftMs = within(limits, snapshot).endsAtMs - clock.now();
  const isRetried = EFFECTS[result.decision.summary.hold].follow === "retry";
  const waitMs = result.reserved > 0 || isRetried ? RETRY_MS : RECHECK_MS;
  await feed.wait(Math.max(0, Math.min(leftMs, waitMs)), limits.signal);
  await clock.sleep(GATHER_MS, limits.signal);
  if (!(await feed.wait(0))) {
    await clock.sleep(RELIST_MS, limits.signal);
    return undefined;
  }
  const mayHaveChanged = HOLDS.some((hold) => EFFECTS[hold].changesUnseen?.(result.decision.summary));
  const isDue = mayHaveChanged || clock.now() >= (result.holdEndsAtMs ?? Number.POSITIVE_INFINITY);
  const isQuiet = feed.applyToView() === 0 && result.reserved === 0 && !result.isStatusOwed && !isDue;
  const same = await readSame(context, snapshot);
  return same && isQuiet && isSteeredAlike(same, snapshot.sidecarSet) ? "quiet" : onto(snapshot, same);
}

function onto(snapshot: Snapshot, sidecarSet: SteeredSidecarSet | undefined): Snapshot | undefined {
  if (!sidecarSet) return undefined;
  snapshot.sidecarSet = sidecarSet;
  return snapshot;
}

async function waitOn({ clock }: Context, limits: Limits, ms: number): Promise<void> {
  const leftMs = limits.endsAtMs - clock.now();
  await clock.sleep(Math.max(0, Math.min(leftMs, ms)), limits.signal);
}

/** The latest start of another round, because with very many pods each decision takes time. */
function within({ endsAtMs, ...limits }: Limits, { decisionMs = 0 }: Snapshot): Limits {
  return { ...limits, endsAtMs: endsAtMs - RESERVE_MS - LAST_DECISIONS * decisionMs };
}

function isManyInFlight({ decision, reserved }: RoundResult): boolean {
  const inFlight = decision.summary.used + reserved;
  return inFlight > MANY_IN_FLIGHT && inFlight > decision.summary.matched * SHARE_IN_FLIGHT;
}

function stopOf(context: Context, progress: Progress): Stop | undefined {
  const { decision, reserved, isOutdated, isWaveNext } = progress.result;
  const isFollowed = reserved > 0 || isOutdated || isWaveNext || isUnderWay(decision.summary, timestamp(context.clock));
  if (!isFollowed) return "settled";
  if (isRefusedThroughout(context, progress.snapshot, decision)) return "refused";
  return areDownForLong(context, progress) ? "unchanged" : undefined;
}

function isUnderWay(summary: Summary, now: string): boolean {
  const { follow } = EFFECTS[summary.hold];
  if (follow === "off") return false;
  if (follow === "wait" || follow === "retry" || isRestarting(summary) || waitsForOthers(summary)) return true;
  return endsSoon(summary, now) || areOwnUnderWay(summary);
}

function areOwnUnderWay(summary: Summary): boolean {
  const { updated, updatedReady, used, selected, rules } = summary;
  // A long drain is for the next pass.
  const drained = isTriedAgain(summary) ? 0 : (rules.drain?.pods ?? 0);
  return selected > drained || used > drained || updated > updatedReady;
}

/** Milliseconds that a pass waits without progress. It leaves drains of other SidecarSets to the next pass. */
function idleMsOf({ decision: { summary }, reserved }: RoundResult): number {
  const areOthersOnly = waitsForOthers(summary) && reserved === 0 && !areOwnUnderWay(summary);
  return areOthersOnly ? CLOCK_SECONDS * 1_000 : IDLE_MS;
}

/** True when a pod that was refused a moment ago has a free place beside the selected ones. */
function isTriedAgain({ trouble, waiting, partition, selected, ...rest }: Summary): boolean {
  return trouble?.isLasting === false && waiting - partition > selected && unavailableOf(rest) < rest.maxUnavailable;
}

function stopByTime(nowMs: number, idleAtMs: number, { endsAtMs, signal }: Limits): Stop | undefined {
  if (signal?.aborted) return "aborted";
  if (nowMs >= endsAtMs) return "deadline";
  return nowMs >= idleAtMs ? "stalled" : undefined;
}

/** True if all remaining pods have been down for long. It also waits for a hold that may change without events. */
function areDownForLong({ clock, cluster }: Context, { snapshot, result }: Progress): boolean {
  const { decision, reserved, written, isOutdated, isMoreToWrite, isWaveNext } = result;
  const { summary } = decision;
  const isBusy = reserved > 0 || written > 0 || isOutdated || isMoreToWrite || isWaveNext || summary.selected > 0;
  // No list contains an evicted pod: its successor is news.
  const departed = snapshot.stored.ledger.departed ?? [];
  const isAwaiting = departed.some(({ until }) => until > serverTimestamp({ clock, cluster }));
  if (isBusy || isAwaiting || EFFECTS[summary.hold].follow === "retry") return false;
  const now = timestamp(clock);
  if (HOLDS.some((hold) => EFFECTS[hold].changesUnseen?.(summary)) || endsSoon(summary, now)) return false;
  const { sidecarSet, observed } = snapshot;
  const names = sidecarContainerNames(sidecarSet);
  const isBack = (pod: Pod) =>
    isReady(pod, sidecarSet) && isConsistent(pod, sidecarSet.metadata?.name ?? "", names, now);
  const down = where(observed.view.records, (pod) => isMatched(pod, sidecarSet) && !isBack(pod));
  return (
    down.length >= Math.max(1, unavailableOf(summary)) && !down.some((pod) => hasChangedLately(pod, sidecarSet, now))
  );
}

function endsSoon(summary: Summary, now: string): boolean {
  return (nextEnd(summary, now, CLOCKED) ?? Number.POSITIVE_INFINITY) <= CLOCK_SECONDS;
}

function hasMoved(before: Progress, after: Progress): boolean {
  const a = before.result.decision.summary;
  const b = after.result.decision.summary;
  return a.updated !== b.updated || a.updatedReady !== b.updatedReady || a.matched !== b.matched;
}

// Ends reservations whose SidecarSet is gone.

/**
 * Empties the ledger of a deleted SidecarSet once no write to its reserved pods can land: otherwise its ConfigMap and
 * namespace could not go. Uncertain reservations stay for the next SidecarSet of that name. @throws KubeError
 */
export async function releaseOrphan(cluster: Cluster, namespace: string, name: string): Promise<void> {
  const stored = await readLedger(cluster, namespace, name);
  const { uid, reservations } = stored.ledger;
  if (reservations.length === 0) return;
  const fenced = new Set<Reservation>();
  let refusal: KubeError | undefined;
  for (const reservation of reservations) {
    const outcome = await fenceOff(cluster, reservation);
    if (outcome === true) fenced.add(reservation);
    else if (outcome && isKubeError(outcome, 403)) refusal ??= outcome;
  }
  const owner = { metadata: { name, uid } };
  await swapLedger(cluster, { namespace, owner }, stored, withoutThese(stored.ledger, fenced));
  if (refusal) throw about(`what is reserved of ${name}, which is gone, can't be released`, refusal);
}

/** True if no patch for the reserved state can arrive any more; otherwise the error that leaves it open. */
async function fenceOff(cluster: Cluster, reservation: Reservation): Promise<true | KubeError> {
  try {
    const { metadata } = await cluster.get(resourceOf(reservation), reservation);
    if (metadata?.uid !== reservation.uid || isLater(metadata.resourceVersion, reservation.resourceVersion))
      return true;
    const outcome = await fence(cluster, reservation);
    return outcome.kind === "done" || outcome.kind === "gone" ? true : outcome.error;
  } catch (error) {
    if (isKubeError(error, 404)) return true;
    // Another author has just written to it, or the outcome is open: a later pass looks.
    if (isKubeError(error)) return error;
    throw error;
  }
}

function fence(cluster: Cluster, reservation: Reservation): Promise<Outcome> {
  if (reservation.workload === undefined) return fencePod(cluster, reservation);
  const patch = fencePatch(reservation);
  return attempt(() => cluster.patch(resourceOf(reservation), reservation, patch, { answer: "metadata" }));
}

/** Updates a view of pods by a watch from the list's version. */
interface PodFeed extends Pick<EventFeed<Pod>, "wait" | "close"> {
  /** Applies the events to the view; returns the number of changed pods. */
  readonly applyToView: () => number;
}

/** Opens a feed; undefined: nothing was listed, so there is no version to continue from. */
export function openPodFeed(
  site: { readonly cluster: Cluster; readonly clock: Clock },
  { view, scope, resourceVersion }: Observed,
): PodFeed | undefined {
  if (resourceVersion === undefined) return undefined;
  // Thousands of events may come during a decision.
  const { wait, take, close } = openFeed<Pod>(site, PODS, watchOptions(scope, resourceVersion), (pod) =>
    scope.isSelected(pod) ? view.record(pod) : { metadata: identityOf(pod), spec: NOT_SELECTED },
  );
  return { wait, close, applyToView: () => take().filter((event) => apply(event, scope, view)).length };
}

function watchOptions(scope: Scope, resourceVersion: string): Omit<WatchOptions, "timeoutSeconds"> {
  const [namespace, ...others] = scope.namespaces ?? [];
  return {
    resourceVersion,
    ...(scope.labelSelector ? { labelSelector: scope.labelSelector } : {}),
    // For several namespaces one watch covers all, and events of others are dropped.
    ...(namespace !== undefined && others.length === 0 ? { namespace } : {}),
  };
}

/** The spec that is stored for pods that are not selected. */
const NOT_SELECTED: Pod["spec"] = { containers: [] };

function identityOf({ metadata: { namespace = "", name = "", uid = "", resourceVersion = "" } = {} }: Pod): ObjectMeta {
  return { namespace, name, uid, resourceVersion };
}

function apply({ type, object }: WatchEvent<Pod>, scope: Scope, view: PodView): boolean {
  const { namespace = "", uid = "", resourceVersion = null } = object.metadata ?? {};
  if (scope.namespaces && !scope.namespaces.has(namespace)) return false;
  // DELETED also means that the selector no longer matches the pod.
  if (type === "DELETED" || object.spec === NOT_SELECTED) return view.remove(uid, resourceVersion);
  return view.put(object);
}
