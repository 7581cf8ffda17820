/** Reconciles SidecarSets, each on its own: observe, decide, write, follow. */
import { AsyncLocalStorage } from "node:async_hooks";
import { isDeepStrictEqual } from "node:util";
import { DRAIN_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { ledgerSubject } from "../../core/ledger.ts";
import { holdsIn, wordsOf } from "../../core/rollout/book.ts";
import { causeOfState } from "../../core/rollout/conditions/verdict.ts";
import { conditionsOfFailure, lastFailure, type PassFailure, STATUS_REFUSED } from "../../core/rollout/pass-trouble.ts";
import { NOTHING_COUNTED } from "../../core/rollout/summary.ts";
import { type Ending, withDoing } from "../../doings.ts";
import { counted } from "../../go/counted.ts";
import { isPassing, KubeError } from "../../kube/error.ts";
import { type Cluster, SIDECARSETS } from "../../kube/port.ts";
import { errorMessage, note, timestamp } from "../loop/clock.ts";
import { failedStand, type Listed, type Reconciler, reconcileAll, type Stand } from "../loop/round-robin.ts";
import { act, type NotDone } from "./act.ts";
import { explain, planOnly } from "./dry-run.ts";
import { evictMissed } from "./evict-missed.ts";
import { beginNotify, notificationsAreSent, podsAreTold } from "./notify.ts";
import type { Context } from "./observe.ts";
import { listAll, missedReport, readSidecarSet } from "./observe-pods.ts";
import { isDenial } from "./pod-trouble.ts";
import { sayRefused } from "./refused-writes.ts";
import { newTally, type SidecarSetReport, type Stop, untoldText } from "./report.ts";
import { beginRollout, followRollout, type Progress, settleRollout } from "./rollout.ts";
import type { Service } from "./service.ts";
import { stateNow, statusPatch, transitions } from "./status-additions.ts";
import { NOT_WRITTEN } from "./write-status.ts";

const RESCAN_MS = 10_000;
/** The part of a pass in which a reading must begin. A later one had less time than the next pass has. */
const MOST_OF_A_PASS = 0.5;

type SidecarSetStand = Stand<SidecarSetReport, Progress>;

/** Ends when nothing is running any more, or the time is up. A SidecarSet's problems go into its report. */
export function reconcileSidecarSets(service: Service, names: readonly string[]): Promise<readonly SidecarSetReport[]> {
  const kind = {
    rescanMs: RESCAN_MS,
    list: () => listSidecarSets(service.cluster),
    reconcilerOf: (name: string) => reconcilerOf(service, name),
  };
  return reconcileAll(service, kind, names);
}

/** Lists SidecarSets. `isDraining`: returns true if one asks for drains. */
export async function listSidecarSets(
  cluster: Cluster,
): Promise<readonly (Listed & { readonly isDraining: boolean })[]> {
  const { items } = await listAll(cluster, SIDECARSETS, {}, ({ metadata }: SidecarSet) => ({
    key: metadata?.name ?? "",
    generation: metadata?.generation ?? 0,
    isDraining: metadata?.annotations?.[DRAIN_ANNOTATION] !== undefined,
  }));
  return items;
}

function reconcilerOf(service: Service, name: string): Reconciler<SidecarSetReport, Progress> {
  const { clock, cluster, kruiseNamespace, settings, gates, readings, limits, beforeDrain } = service;
  const site = { cluster, clock, kruiseNamespace, endsAtMs: limits.endsAtMs, settings, gates, readings, beforeDrain };
  const beside = AsyncLocalStorage.snapshot();
  // A pass may end before the pods are read, so it sends its notifications at the beginning.
  const onRead = (read: SidecarSet) => {
    if (!service.isDryRun && lastFailure(read)) beginNotify(context, undefined, read);
  };
  const context: Context = { ...site, tally: newTally(), recorded: new Set(), beside, onRead };
  let isNoted = false;
  const onEnd = async (report: SidecarSetReport, beganAtMs: number) => {
    await podsAreTold(context);
    const failure = noteUnread(service, report, beganAtMs) ?? report.failure;
    // A SidecarSet that fails is begun again within the pass, which counts as one failed pass.
    if (failure !== undefined && !isNoted && !service.isDryRun) {
      isNoted = true;
      await noteFailure(service, context, name, failure);
    }
    await notificationsAreSent(context);
    const untold = untoldText({ name, tally: context.tally });
    if (untold !== undefined) note(service, untold);
  };
  const about = { "sidecarset.name": name };
  return {
    begin: () => withDoing("begin", about, () => begin(service, context, name), endingOf),
    follow: (progress) => withDoing("follow", about, () => follow(service, context, name, progress), endingOf),
    settle: (progress) =>
      withDoing("settle", about, () => settle(context, name, { stop: "oneRound", progress }), endingOf),
    onEnd,
  };
}

async function noteFailure(service: Service, context: Context, name: string, failure: PassFailure): Promise<void> {
  const written = await writeFailure({ ...context, cluster: service.lateCluster }, name, failure);
  if (written) beginNotify(context, undefined, written);
  const since = written === undefined ? "unknown" : blockedSince(written);
  if (since !== undefined) service.failing.set(name, since);
}

/** The time since which passes fail, RFC3339; undefined: this is the first one. */
function blockedSince({ status }: SidecarSet): string | undefined {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  return blocked?.status === "True" ? blocked.lastTransitionTime : undefined;
}

/** Records that the time ended before the pods were read, although there was much of it: that will happen again. */
function noteUnread(
  service: Service,
  { name, stop, tally }: SidecarSetReport,
  beganAtMs: number,
): PassFailure | undefined {
  if (stop !== "deadline" || tally.rounds > 0) return undefined;
  const { limits, readings, notReached, unread } = service;
  const hadMs = limits.endsAtMs - beganAtMs;
  if (hadMs < MOST_OF_A_PASS * limits.lastsMs) {
    notReached.push(name);
    return undefined;
  }
  unread.push(name);
  const pods = counted(readings.get(name)?.reading.pods ?? 0, "pod");
  const seconds = Math.round(hadMs / 1000);
  const text = `nothing was decided, the time (${seconds} s) was over when ${pods} had been read`;
  note(service, `SidecarSet ${name}: ${text}: give passes more time, or the SidecarSet a narrower selector`);
  return { hold: "unread", text };
}

/** Facts for spans: the state of the rollout, and the problems of its pods so far. */
function endingOf({ report: { stop, why, tally, state } }: SidecarSetStand): Ending {
  const { rounds, upgraded, problems } = tally;
  const values = { "sidecarset.stop": stop, "sidecarset.state": state, "sidecarset.rounds": rounds };
  return {
    values: { ...values, "sidecarset.pods.upgraded": upgraded },
    problems: problems.map(({ namespace, name, message }) => `${namespace}/${name}: ${message}`),
    failure: stop === "failed" ? why : undefined,
  };
}

/** Runs the first round, or returns a final report. */
async function begin(service: Service, context: Context, name: string): Promise<SidecarSetStand> {
  try {
    if (service.isDryRun) return { report: await planOnly(context, name, service.plan) };
    const begun = await beginRollout(context, name);
    if (typeof begun === "string") return { report: reportOn(context, name, begun) };
    const { snapshot, result: first } = begun;
    // Notifications that an earlier pass could not send go out before the first round.
    beginNotify(context, undefined, snapshot.sidecarSet);
    const { evicted, isOutdated } = await evictMissed(context, snapshot, holdsIn(first.decision.summary));
    if (evicted > 0) context.tally.evicted = (context.tally.evicted ?? 0) + evicted;
    const reserved = snapshot.stored.ledger.reservations.length;
    const result = { ...first, reserved, isOutdated: first.isOutdated || isOutdated };
    const progress = { snapshot, result };
    return { report: reportOn(context, name, "oneRound", progress), progress };
  } catch (error) {
    return failed(context, name, error);
  }
}

async function follow({ limits }: Service, context: Context, name: string, begun: Progress): Promise<SidecarSetStand> {
  try {
    return await settle(context, name, await followRollout(context, begun, limits));
  } catch (error) {
    return failed(context, name, error);
  }
}

async function settle(
  context: Context,
  name: string,
  { stop, progress }: { readonly stop: Stop; readonly progress: Progress },
): Promise<SidecarSetStand> {
  try {
    return { report: reportOn(context, name, stop, await settleRollout(context, progress)) };
  } catch (error) {
    return failed(context, name, error);
  }
}

function reportOn(context: Context, name: string, stop: Stop, progress?: Progress): SidecarSetReport {
  const { tally } = context;
  if (!progress) return { name, stop, why: explain(stop, undefined), tally, ...troubleOf(contentionOf(stop)) };
  const { snapshot, result } = progress;
  const { status, summary, halt } = sayRefused(context, snapshot.sidecarSet, result.decision);
  const { generation } = ledgerSubject(snapshot.sidecarSet);
  const missed = missedReport(snapshot, context.clock.epochMs());
  const state = stateNow(context, snapshot, result.decision);
  const cause = causeOfState(state.state, wordsOf(summary.hold, { ...summary, halt }, name).cause);
  const known = { ...(missed ? { missed } : {}), ...state, cause };
  return { name, stop, why: explain(stop, summary), generation, status, summary, tally, ...known };
}

function contentionOf(stop: Stop): PassFailure | undefined {
  if (stop !== "contention") return undefined;
  return { hold: "contention", text: "others wrote the SidecarSet or its ledger each time before a pass could" };
}

/** The trouble of a pass that made no decision. */
function troubleOf(failure: PassFailure | undefined): Pick<SidecarSetReport, "failure" | "cause"> {
  if (failure === undefined) return {};
  return { failure, cause: wordsOf(failure.hold, { ...NOTHING_COUNTED, hold: failure.hold }, "").cause };
}

function failed({ tally }: Context, name: string, error: unknown): SidecarSetStand {
  return failedStand(error, (stop, why) => ({ name, stop, why, tally, ...troubleOf(failureOf(error)) }));
}

// Writes into the status why a pass over a SidecarSet made no decision.

/**
 * Counts for a status that must have some. Without `observedGeneration` they mean nothing. The first pass that reserves
 * adds the ledger's place.
 */
const UNSEEN = { matchedPods: 0, updatedPods: 0, readyPods: 0, ledgerNamespace: "" } as const;

/** The failure in the words of the status; undefined: the time of the pass has ended, so the next one tries. */
function failureOf(error: unknown): PassFailure | undefined {
  const message = errorMessage(error);
  if (isPassing(error)) return { hold: "unreachable", text: `the API server gave a pass no usable answer: ${message}` };
  if (!(error instanceof KubeError)) return { hold: "passFailed", text: `a pass failed: ${message}` };
  if (error.reason === "DeadlineExceeded") return undefined;
  if (error.code >= 400) return { hold: "passRefused", text: `the API server refuses a pass: ${message}` };
  return { hold: "passFailed", text: `a pass failed: ${message}` };
}

/**
 * The SidecarSet after the write; undefined: nothing was written. The status cannot be written, already says so, or has
 * no conditions (OpenKruise's CRD).
 */
async function writeFailure(context: Context, name: string, failure: PassFailure): Promise<SidecarSet | undefined> {
  const sidecarSet = await readSidecarSet(context.cluster, name).catch(() => undefined);
  if (sidecarSet === undefined) return undefined;
  const { status } = sidecarSet;
  if (status !== undefined && status.conditions === undefined) return undefined;
  const conditions = conditionsOfFailure(sidecarSet, failure, timestamp(context.clock));
  if (isDeepStrictEqual(conditions, status?.conditions)) return sidecarSet;
  const next = { ...UNSEEN, ...status, conditions };
  const outcome = await act(statusPatch(context, sidecarSet, next), { ...context, sidecarSet });
  if (outcome.kind !== "done") {
    if (await isStatusRefused(context, sidecarSet, outcome)) await recordRefusal(context, sidecarSet, failure, outcome);
    return undefined;
  }
  const written = outcome.object as SidecarSet;
  for (const event of transitions(sidecarSet, written)) await act(event, { ...context, sidecarSet });
  return written;
}

/** True if the write was refused, without another author. An expired token, load or a broken connection refuses nothing. */
async function isStatusRefused({ cluster }: Context, before: SidecarSet, { kind, error }: NotDone): Promise<boolean> {
  if (kind !== "conflict") return kind === "refused" && (isDenial(error) || ![0, 401, 429].includes(error.code));
  const now = await readSidecarSet(cluster, before.metadata?.name ?? "").catch(() => undefined);
  return now?.metadata?.resourceVersion === before.metadata?.resourceVersion;
}

/** Records an Event that readers use in place of the status, which passes may not write. */
async function recordRefusal(
  context: Context,
  sidecarSet: SidecarSet,
  { text }: PassFailure,
  { error }: NotDone,
): Promise<void> {
  const { name = "", uid = "" } = sidecarSet.metadata ?? {};
  const regarding = { kind: "SidecarSet", name, uid } as const;
  const message = text.includes(NOT_WRITTEN) ? text : `${text}; ${NOT_WRITTEN}: ${error.message}`;
  await act(
    { kind: "RecordEvent", regarding, type: "Warning", reason: STATUS_REFUSED, message },
    { ...context, sidecarSet },
  );
}
