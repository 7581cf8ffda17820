/** Gives each SidecarSet its turn: one round for all of them first, then those under way are followed side by side. */
import { subjectOf } from "../../core/ledger.ts";
import { type Ending, told } from "../../doings.ts";
import { counted } from "../../go/counted.ts";
import { isPassing, KubeError } from "../../kube/error.ts";
import type { Clock } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency.ts";
import { planOnly } from "./dry-run.ts";
import { evictMissed } from "./evict-missed.ts";
import { explain } from "./explain.ts";
import { missedReport } from "./find-missed.ts";
import type { RolloutContext } from "./look.ts";
import { newTally, type SidecarSetReport, type Stop } from "./report.ts";
import { beginRollout, followRollout, type Progress, settleRollout } from "./rollout.ts";
import { messageOf, note, type Service } from "./service.ts";
import { verdictNow } from "./status-additions.ts";
import { cursorOf, dueNames, reportsOf, type Turn, Turns } from "./turn-order.ts";

const BEGUN_AT_ONCE = 4;
/** Each holds a watch. Those beyond get another round when their turn comes again. */
const FOLLOWED_AT_ONCE = 16;
/** Less time than this is not enough to begin with another SidecarSet. */
const LAST_BEGIN_MS = 3_000;
/** Who began later had less time than the next pass has. */
const MOST_OF_A_PASS = 0.5;
/** While some are followed the others are looked after: changed ones this soon. */
const RESCAN_MS = 10_000;
/** Where the API server is in trouble a rollout begins again, after 1, 2, 4 and 8 seconds; then a later pass goes on. */
const FIRST_RETRY_MS = 1_000;
const MAX_RETRIES = 4;
/** What an API server asks to wait is heeded up to here. */
const MAX_RETRY_MS = 10_000;

/** How far a SidecarSet has come in this pass. */
interface Stand {
  readonly report: SidecarSetReport;
  /** set when there is something to go on with */
  readonly progress?: Progress;
  /** set when it is worth beginning again soon */
  readonly trouble?: KubeError;
}

/** Ends when nothing is under way any more, or the time is up. Trouble with one SidecarSet is in its report. */
export async function serve(service: Service, names: readonly string[]): Promise<readonly SidecarSetReport[]> {
  const turns = new Turns();
  await takeTurns(service, turns, names);
  for (;;) {
    const following = [...turns.values()].flatMap((turn) => turn.following ?? []);
    if (following.length === 0) {
      service.cursor = cursorOf(service, turns);
      return reportsOf(turns, names);
    }
    const all = Promise.all(following);
    if (!service.isRescanning || !isTimeLeft(service)) await all;
    else if ((await firstOf(service.clock, all)) === "rescan")
      await takeTurns(service, turns, await dueNames(service, turns));
  }
}

async function firstOf(clock: Clock, all: Promise<unknown>): Promise<"all" | "rescan"> {
  const done = new AbortController();
  const rescan = clock.sleep(RESCAN_MS, done.signal).then(() => "rescan" as const);
  const first = await Promise.race([all.then(() => "all" as const), rescan]);
  done.abort();
  return first;
}

async function takeTurns(service: Service, turns: Turns, names: readonly string[]): Promise<void> {
  await mapLimited(names, BEGUN_AT_ONCE, async (name) => {
    if (isTimeLeft(service)) await takeTurn(service, turns, name);
    else if (!turns.has(name)) service.notReached.push(name);
  });
}

async function takeTurn(service: Service, turns: Turns, name: string): Promise<void> {
  const { clock, cluster, kruiseNamespace, settings, gates, readings } = service;
  const { endsAtMs } = service.limits;
  service.cursor = name;
  turns.order.add(name);
  const site = { cluster, clock, kruiseNamespace, endsAtMs, settings, gates, readings };
  const context = turns.get(name)?.context ?? { ...site, tally: newTally(), told: new Set() };
  const beganAtMs = clock.now();
  const begun = await begin(service, context, name);
  const turn: Turn = { context, report: begun.report, endedAtMs: clock.now() };
  turns.set(name, turn);
  const isFollowed = service.isFollowing && turns.followed < FOLLOWED_AT_ONCE;
  if (!begun.progress && !(begun.trouble && isFollowed)) return noteUnread(service, begun.report, beganAtMs);
  turns.followed++;
  turn.following = (isFollowed ? persist(service, context, begun) : finish(service, context, begun, false)).then(
    (last) => {
      turn.report = last.report;
      turn.endedAtMs = clock.now();
      turn.following = undefined;
      turns.followed--;
      noteUnread(service, last.report, beganAtMs);
    },
  );
  if (!isFollowed) await turn.following;
}

/** The time was over before the pods were read: for one that had most of it, so it would be for ever. */
function noteUnread(service: Service, { name, stop, tally }: SidecarSetReport, beganAtMs: number): void {
  if (stop !== "deadline" || tally.rounds > 0) return;
  const { limits, readings, notReached, unread } = service;
  const hadMs = limits.endsAtMs - beganAtMs;
  if (hadMs < MOST_OF_A_PASS * limits.lastsMs) {
    notReached.push(name);
    return;
  }
  unread.push(name);
  const pods = counted(readings.get(name)?.reading.pods ?? 0, "pod");
  const seconds = Math.round(hadMs / 1000);
  note(
    service,
    `SidecarSet ${name}: nothing was decided, the time (${seconds} s) was over when ${pods} had been read: give passes more time, or the SidecarSet a narrower selector`,
  );
}

/** Follows to the end, and begins again as long as nothing but trouble with the API server is in the way. */
async function persist(service: Service, context: RolloutContext, begun: Stand): Promise<Stand> {
  const { name } = begun.report;
  let stand = begun;
  for (let failures = 0; ; failures++) {
    if (stand.progress) {
      failures = 0;
      stand = await finish(service, context, stand, true);
    }
    if (!stand.trouble || failures === MAX_RETRIES) return stand;
    const { retryAfterSeconds = 0 } = stand.trouble;
    const waitMs = Math.max(FIRST_RETRY_MS * 2 ** failures, 1000 * retryAfterSeconds);
    await context.clock.sleep(Math.min(waitMs, MAX_RETRY_MS), service.limits.signal);
    if (!isTimeLeft(service)) return stand;
    stand = await begin(service, context, name);
  }
}

/** The first round, or all there is to say. */
function begin(service: Service, context: RolloutContext, name: string): Promise<Stand> {
  return told("begin", { "sidecarset.name": name }, () => beginNow(service, context, name), endingOf);
}

/** For spans: how it stands, and what went wrong with its pods so far. */
function endingOf({ report: { stop, why, tally, state } }: Stand): Ending {
  const { rounds, upgraded, problems } = tally;
  const values = { "sidecarset.stop": stop, "sidecarset.state": state, "sidecarset.rounds": rounds };
  return {
    values: { ...values, "sidecarset.pods.upgraded": upgraded },
    problems: problems.map(({ namespace, name, message }) => `${namespace}/${name}: ${message}`),
    failure: stop === "failed" ? why : undefined,
  };
}

async function beginNow(service: Service, context: RolloutContext, name: string): Promise<Stand> {
  try {
    if (service.isDryRun) return { report: await planOnly(context, name, service.plan) };
    const begun = await beginRollout(context, name);
    if (typeof begun === "string") return { report: reportOn(context, name, begun) };
    const { look } = begun;
    const { evicted, isOutdated } = await evictMissed(context, look);
    if (evicted > 0) context.tally.evicted = (context.tally.evicted ?? 0) + evicted;
    const reserved = look.stored.ledger.reservations.length;
    const result = { ...begun.result, reserved, isOutdated: begun.result.isOutdated || isOutdated };
    const progress = { look, result };
    return { report: reportOn(context, name, "oneRound", progress), progress };
  } catch (error) {
    return failed(context, name, error);
  }
}

function finish(service: Service, context: RolloutContext, begun: Stand, isFollowed: boolean): Promise<Stand> {
  const finishing = () => finishNow(service, context, begun, isFollowed);
  return told(isFollowed ? "follow" : "settle", { "sidecarset.name": begun.report.name }, finishing, endingOf);
}

async function finishNow(
  { limits }: Service,
  context: RolloutContext,
  begun: Stand,
  isFollowed: boolean,
): Promise<Stand> {
  const { report, progress } = begun;
  if (!progress) return begun;
  try {
    const end = isFollowed ? await followRollout(context, progress, limits) : { stop: "oneRound" as const, progress };
    return { report: reportOn(context, report.name, end.stop, await settleRollout(context, end.progress)) };
  } catch (error) {
    return failed(context, report.name, error);
  }
}

function reportOn(context: RolloutContext, name: string, stop: Stop, progress?: Progress): SidecarSetReport {
  const { tally } = context;
  if (!progress) return { name, stop, why: explain(stop, undefined), tally };
  const { look, result } = progress;
  const { status, summary } = result.decision;
  const { generation } = subjectOf(look.sidecarSet);
  const [missed, state] = [missedReport(look), verdictNow(context, look, result.decision)];
  const known = { ...(missed ? { missed } : {}), ...(state ? { state } : {}) };
  return { name, stop, why: explain(stop, summary), generation, status, summary, tally, ...known };
}

/** Whatever goes wrong with one SidecarSet, a bug of ours too, concerns no other. */
function failed({ tally }: RolloutContext, name: string, error: unknown): Stand {
  const stop = error instanceof KubeError && error.reason === "DeadlineExceeded" ? "deadline" : "failed";
  return { report: { name, stop, why: messageOf(error), tally }, ...(isPassing(error) ? { trouble: error } : {}) };
}

function isTimeLeft({ limits, clock }: Service): boolean {
  return limits.signal?.aborted !== true && clock.now() <= limits.endsAtMs - LAST_BEGIN_MS;
}
