/** Reconciles Advanced StatefulSets, each on its own. */
import type { Pod } from "../../api/kubernetes.ts";
import type { StatefulSet } from "../../api/stateful-set.ts";
import { MAX_OF_SET, reconcileLedger, withReservations } from "../../core/ledger.ts";
import { hasChangedLately, isRunningAndReady } from "../../core/pod/is-ready.ts";
import { explainSet, isSetSettled, type SetStanding, setStanding } from "../../core/statefulset/explain/explain-set.ts";
import { planSetRollout } from "../../core/statefulset/plan/plan-set-rollout.ts";
import { planSet } from "../../core/statefulset/plan/simulated-world.ts";
import { isFinished, isHealthy, isTerminating, waitsForPass } from "../../core/statefulset/pods/pod-phase.ts";
import type { StatefulSetFeatureGates } from "../../core/statefulset/step.ts";
import { isLater } from "../../go/resource-version.ts";
import { ifThere, isKubeError } from "../../kube/error.ts";
import { type Cluster, PODS, STATEFUL_SETS } from "../../kube/port.ts";
import { type Limits, timestamp } from "../loop/clock.ts";
import { type EventFeed, openFeed } from "../loop/event-feed.ts";
import type { PassService } from "../loop/open-pass.ts";
import { failedStand, type Listed, reconcileAll, type Stand } from "../loop/round-robin.ts";
import { listAll } from "../rollout/observe-pods.ts";
import type { Stop } from "../rollout/report.ts";
import { OutdatedSnapshot } from "./act.ts";
import {
  asCompared,
  listOptions,
  observationOf,
  observeSet,
  type SetContext,
  type SetKey,
  type SetSnapshot,
  seeReserved,
  setSubject,
} from "./observe.ts";
import { describeRequest, explainStop, newSetTally, type SetReport } from "./report.ts";
import { type SetRound, setRound, wantedStates } from "./round.ts";

const RESCAN_MS = 5_000;

export interface SetService extends PassService {
  readonly gates: StatefulSetFeatureGates;
  /** for a dry run: the report also has a plan for each set */
  readonly plan?: SetPlanWish;
}

type SetStand = Stand<SetReport, SetProgress>;

/** Lists the sets as NAMESPACE/NAME; undefined: the cluster has no such kind. */
export async function listStatefulSets(cluster: Cluster): Promise<readonly Listed[] | undefined> {
  try {
    const { items } = await listAll<StatefulSet, Listed>(cluster, STATEFUL_SETS, {}, ({ metadata }) => ({
      key: keyText({ namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" }),
      generation: metadata?.generation ?? 0,
    }));
    return items;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

export function keyText({ namespace, name }: SetKey): string {
  return `${namespace}/${name}`;
}

/** Ends when nothing is running, or the time is up. A set's problems go into its report. `keys`: NAMESPACE/NAME. */
export function reconcileSets(service: SetService, keys: readonly string[]): Promise<readonly SetReport[]> {
  const { cluster, clock, gates } = service;
  const kind = {
    rescanMs: RESCAN_MS,
    list: async () => (await listStatefulSets(cluster)) ?? [],
    reconcilerOf: (text: string) => {
      const [namespace = "", name = ""] = text.split("/");
      const key = { namespace, name };
      const context: SetContext = { cluster, clock, gates, key, tally: newSetTally(), recorded: new Set() };
      return {
        begin: () => begin(service, context),
        follow: (progress: SetProgress) => follow(service, context, progress),
      };
    },
  };
  return reconcileAll(service, kind, keys);
}

async function begin(service: SetService, context: SetContext): Promise<SetStand> {
  try {
    if (service.isDryRun) return { report: await planSetOnly(context, service.plan) };
    const progress = await beginSet(context);
    if (typeof progress === "string") return { report: reportOn(context, progress) };
    return { report: reportOn(context, "oneRound", progress), progress };
  } catch (error) {
    return failed(context, error);
  }
}

async function follow({ limits }: SetService, context: SetContext, begun: SetProgress): Promise<SetStand> {
  try {
    const end = await followSet(context, begun, limits);
    return { report: reportOn(context, end.stop, end.progress) };
  } catch (error) {
    return failed(context, error);
  }
}

/** A pass that could not continue has failed, whatever its end. */
function reportOn({ key, tally }: SetContext, stop: Stop, progress?: SetProgress): SetReport {
  if (!progress) return { ...key, stop, why: explainStop(stop, undefined), tally };
  const { round, standing } = progress;
  const failure = round.outcome.failure?.message;
  const { status } = round;
  const { metadata } = round.snapshot.set;
  const end = failure === undefined ? stop : "failed";
  const why = explainStop(end, standing, failure);
  const generation = metadata?.generation ?? 0;
  return { ...key, stop: end, why, generation, ...(status ? { status } : {}), standing, tally };
}

function failed({ key, tally }: SetContext, error: unknown): SetStand {
  const help = isKubeError(error, 403) ? "; infra/rbac/optional/ordered-sets.yaml grants what is missing" : "";
  return failedStand(error, (stop, why) => ({ ...key, stop, why: `${why}${help}`, tally }));
}

// Advances one set as far as the time allows: round after round, as its pods come and go.

/** Events come in bursts. */
const GATHER_MS = 50;
/** Without events the set is read again this often: a new template or a pause takes effect soon. */
const RECHECK_MS = 2_000;
/** Wait before a failed action is tried again. */
const RETRY_MS = 2_000;
/** After this long without progress the rest waits for a later pass. */
const IDLE_MS = 60_000;
/** Time reserved for the last writes. */
const RESERVE_MS = 2_000;
const MAX_RESTARTS = 8;
const RESTART_MS = 100;

/** The state of a set after its last round. */
interface SetProgress {
  readonly round: SetRound;
  readonly standing: SetStanding;
}

/** The first round. A Stop when the set cannot continue. Throws errors that it cannot handle. */
export async function beginSet(context: SetContext): Promise<SetProgress | Stop> {
  for (let attempt = 1; attempt <= MAX_RESTARTS; attempt++) {
    const snapshot = await observeSet(context, true);
    if (!snapshot) return "gone";
    const progress = await attemptRound(() => setRound(context, snapshot));
    if (progress) return progress;
    await restart(context, attempt);
  }
  return "contention";
}

/** undefined: look again. */
async function attemptRound(work: () => Promise<SetRound>): Promise<SetProgress | undefined> {
  try {
    const round = await work();
    const { updateRevision } = round.outcome;
    return { round, standing: setStanding(round.seen, updateRevision) };
  } catch (error) {
    if (error instanceof OutdatedSnapshot) return undefined;
    throw error;
  }
}

async function restart({ clock, tally }: SetContext, attempt: number): Promise<void> {
  tally.restarts++;
  await clock.sleep(RESTART_MS * attempt * (0.5 + clock.random()));
}

interface Following {
  progress: SetProgress;
  feed: EventFeed<Pod>;
  /** no feed shows what has happened since */
  isFeedLost: boolean;
  /** name → what was seen of the pod last */
  readonly known: Map<string, string>;
  /** time of the last progress */
  movedAtMs: number;
  restarts: number;
}

/** Runs rounds until nothing is left to do, or the time nears its end. */
export async function followSet(
  context: SetContext,
  first: SetProgress,
  limits: Limits,
): Promise<{ readonly stop: Stop; readonly progress: SetProgress }> {
  const following: Following = {
    progress: first,
    feed: openFeedFrom(context, first.round.snapshot),
    isFeedLost: false,
    known: new Map(),
    movedAtMs: context.clock.now(),
    restarts: 0,
  };
  learn(following);
  try {
    for (;;) {
      const stop = await step(context, following, limits);
      if (stop) return { stop, progress: following.progress };
    }
  } finally {
    following.feed.close();
  }
}

function openFeedFrom(context: SetContext, { set, resourceVersion }: SetSnapshot): EventFeed<Pod> {
  return openFeed<Pod>(context, PODS, { ...listOptions(set, context.key.namespace), resourceVersion });
}

async function step(context: SetContext, following: Following, limits: Limits): Promise<Stop | undefined> {
  const { clock } = context;
  const stop = stopOf(following.progress, timestamp(clock)) ?? stopByTime(clock.now(), following.movedAtMs, limits);
  if (stop) return stop;
  if (following.restarts === 0 && !(await hasNews(context, following, limits))) return undefined;
  // After a restarted round, also reads reserved objects that the selector does not show.
  const snapshot = await observeSet(context, following.restarts > 0);
  if (!snapshot) return "gone";
  reopenLostFeed(context, following, snapshot);
  const next = await attemptRound(() => setRound(context, snapshot));
  if (!next) {
    following.restarts++;
    if (following.restarts >= MAX_RESTARTS) return "contention";
    await restart(context, following.restarts);
    return undefined;
  }
  if (next.round.written > 0 || hasMoved(following.progress, next)) following.movedAtMs = clock.now();
  following.restarts = 0;
  following.progress = next;
  learn(following);
  return undefined;
}

function reopenLostFeed(context: SetContext, following: Following, snapshot: SetSnapshot): void {
  if (!following.isFeedLost) return;
  following.feed.close();
  following.feed = openFeedFrom(context, snapshot);
  following.isFeedLost = false;
}

/** True when another round is worth it: pods changed, the time for them is over, or the set changed. */
async function hasNews(context: SetContext, following: Following, limits: Limits): Promise<boolean> {
  const { outcome, reserved, written } = following.progress.round;
  if (outcome.failure) {
    await context.clock.sleep(leftMs(context, limits, RETRY_MS), limits.signal);
    return true;
  }
  const { requeueAfterSeconds } = outcome;
  const waitMs = requeueAfterSeconds > 0 ? Math.min(RECHECK_MS, 1000 * requeueAfterSeconds) : RECHECK_MS;
  if (await havePodsChanged(context, following, limits, waitMs)) return true;
  // Looks once more at written pods, and frees reservations, even without news.
  return reserved > 0 || written > 0 || requeueAfterSeconds > 0 || (await isOtherSet(context, following.progress));
}

/** True also when the feed is lost: only a new snapshot shows the state; without watches, snapshots replace them. */
async function havePodsChanged(context: SetContext, following: Following, limits: Limits, waitMs: number) {
  const { clock } = context;
  const { feed } = following;
  const untilMs = clock.now() + leftMs(context, limits, waitMs);
  for (;;) {
    if (!(await feed.wait(Math.max(0, untilMs - clock.now()), limits.signal))) {
      following.isFeedLost = true;
      await clock.sleep(Math.max(0, untilMs - clock.now()), limits.signal);
      return true;
    }
    await clock.sleep(GATHER_MS, limits.signal);
    const news = feed.take().filter(({ type, object }) => isNews(following, type, object));
    if (news.length > 0) return true;
    if (clock.now() >= untilMs || limits.signal?.aborted) return false;
  }
}

function leftMs({ clock }: SetContext, { endsAtMs }: Limits, waitMs: number): number {
  return Math.max(0, Math.min(endsAtMs - RESERVE_MS - clock.now(), waitMs));
}

async function isOtherSet({ cluster, key }: SetContext, { round }: SetProgress): Promise<boolean> {
  const { uid, generation } = round.snapshot.set.metadata ?? {};
  const now = await ifThere(cluster.get<StatefulSet>(STATEFUL_SETS, key));
  return now?.metadata?.uid !== uid || now?.metadata?.generation !== generation;
}

function learn({ known, progress }: Following): void {
  const { snapshot, touched } = progress.round;
  known.clear();
  for (const pod of snapshot.pods) known.set(pod.metadata?.name ?? "", signatureOf(pod));
  // Any further event of a pod that waits for this pass is news.
  for (const pod of touched) known.set(pod.metadata?.name ?? "", waitsForPass(pod) ? "" : signatureOf(pod));
}

function isNews({ known, progress }: Following, type: string, pod: Pod): boolean {
  const { name = "", resourceVersion } = pod.metadata ?? {};
  if (!isLater(resourceVersion, progress.round.snapshot.resourceVersion)) return false;
  const signature = type === "DELETED" ? "" : signatureOf(asCompared(pod));
  if (known.get(name) === signature) return false;
  known.set(name, signature);
  return true;
}

function stopOf({ round, standing }: SetProgress, now: string): Stop | undefined {
  const isOver = round.written === 0 && round.reserved === 0 && round.outcome.failure === undefined;
  if (!isOver) return undefined;
  const { deletionTimestamp } = round.snapshot.set.metadata ?? {};
  if (isSetSettled(standing) || deletionTimestamp) return "settled";
  const down = round.snapshot.pods.filter((pod) => !isRunningAndReady(pod));
  const isStill = round.outcome.requeueAfterSeconds === 0 && down.length > 0;
  return isStill && !down.some((pod) => hasChangedLately(pod, undefined, now)) ? "unchanged" : undefined;
}

function stopByTime(nowMs: number, movedAtMs: number, { endsAtMs, signal }: Limits): Stop | undefined {
  if (signal?.aborted) return "aborted";
  if (nowMs >= endsAtMs - RESERVE_MS) return "deadline";
  return nowMs - movedAtMs >= IDLE_MS ? "stalled" : undefined;
}

function hasMoved(before: SetProgress, after: SetProgress): boolean {
  const { waitingFor: _a, ...a } = before.standing;
  const { waitingFor: _b, ...b } = after.standing;
  return JSON.stringify(a) !== JSON.stringify(b);
}

// Filters out pod events that cannot affect the set: nodes report far more often than a relevant field changes.

/** Equal for two states of a pod that make no difference to a pass. */
export function signatureOf(pod: Pod): string {
  const { uid, labels, annotations, finalizers } = pod.metadata ?? {};
  if (isTerminating(pod)) return JSON.stringify([uid, "terminating", finalizers]);
  const runs = (pod.status?.containerStatuses ?? []).map(({ image, imageID, containerID }) => [
    image,
    imageID,
    containerID,
  ]);
  const states = [
    isHealthy(pod),
    isFinished(pod),
    pod.status?.phase !== undefined && waitsForPass(pod),
    isUpdating(pod) ? runs : [],
  ];
  return JSON.stringify([uid, labels, annotations, finalizers, states]);
}

function isUpdating({ metadata }: Pod): boolean {
  return Object.keys(metadata?.annotations ?? {}).some((key) => key.includes("inplace-update-"));
}

// The actions of a pass on one set now, without writing.

/** Options of a forecast beyond the current actions. */
export interface SetPlanWish {
  /** how long a pod is taken to be not ready after it was made, or its images were changed */
  readonly readyAfterSeconds: number;
  /** the set to plan in place of the stored one; absent: the stored one */
  readonly set?: StatefulSet;
}

/** Without these options the report has only the current actions, and no forecast. */
export async function planSetOnly(context: SetContext, wish?: SetPlanWish): Promise<SetReport> {
  const { key, tally } = context;
  const snapshot = await observeSet(context, true, wish?.set);
  if (!snapshot) return { ...key, stop: "gone", why: explainStop("gone", undefined), tally };
  const subject = setSubject(snapshot.set);
  const kept = reconcileLedger(snapshot.stored.ledger, await seeReserved(context, snapshot), subject)?.kept ?? [];
  const seen = observationOf(context, snapshot, new Set(kept.map(({ uid }) => uid)));
  const plan = planSet(seen, snapshot);
  const { fenced } = withReservations(kept, wantedStates(plan), subject, { limit: MAX_OF_SET });
  const standing = setStanding(seen, plan.outcome.updateRevision);
  const planned = [
    ...fenced.map(({ namespace, name }) => `fence ${namespace}/${name}: it was reserved and is not wanted any more`),
    ...plan.writes.flatMap((request) => describeRequest(request) ?? []),
  ];
  const { generation } = subject;
  const { status } = snapshot.set;
  return {
    ...key,
    stop: "oneRound",
    why: explainSet(standing),
    generation,
    ...(status ? { status } : {}),
    standing,
    tally,
    planned,
    ...(wish ? { plan: planSetRollout(seen, snapshot, wish) } : {}),
  };
}
