/** Gives each ordered set its turn, each on its own: one round for all of them first, then those under way are followed. */
import type { StatefulSet } from "../../api/stateful-set.ts";
import type { OrderedSetGates } from "../../core/statefulset/gates.ts";
import { isKubeError, isPassing, KubeError } from "../../kube/error.ts";
import { type Cluster, STATEFUL_SETS } from "../../kube/port.ts";
import type { Clock, Limits } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency.ts";
import { listAll } from "../rollout/observe.ts";
import type { Stop } from "../rollout/report.ts";
import { planSetOnly, type SetPlanWish } from "./dry-run.ts";
import { beginSet, followSet, type SetProgress } from "./follow.ts";
import type { SetContext, SetKey } from "./look.ts";
import { explainStop, newSetTally, type SetReport } from "./report.ts";

const BEGUN_AT_ONCE = 4;
/** Each holds a watch. Those beyond get another round when their turn comes again. */
const FOLLOWED_AT_ONCE = 16;
/** Less time than this is not enough to begin with another set. */
const LAST_BEGIN_MS = 3_000;
/** While some are followed the others are looked after: changed ones this soon, all of them in a minute. */
const RESCAN_MS = 5_000;
const RETURN_MS = 60_000;
/** Where the API server is in trouble a set is begun again, after 1, 2, 4 and 8 seconds; then a later pass goes on. */
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 10_000;
const MAX_RETRIES = 4;

export interface SetService {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly gates: OrderedSetGates;
  readonly limits: Limits;
  readonly isDryRun: boolean;
  /** dry run: how each set would go on is told, too */
  readonly plan?: SetPlanWish;
  readonly isFollowing: boolean;
  /** false: nobody but those named is served */
  readonly isRescanning: boolean;
  readonly problems: string[];
  readonly notReached: string[];
  /** NAMESPACE/NAME of the set whose turn came last */
  cursor: string;
}

export interface ListedSet extends SetKey {
  readonly generation: number;
}

/** Undefined where the cluster has no such kind. */
export async function listSets(cluster: Cluster): Promise<readonly ListedSet[] | undefined> {
  try {
    const { items } = await listAll<StatefulSet, ListedSet>(cluster, STATEFUL_SETS, {}, ({ metadata }) => ({
      namespace: metadata?.namespace ?? "",
      name: metadata?.name ?? "",
      generation: metadata?.generation ?? 0,
    }));
    return items;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

export function textOf({ namespace, name }: SetKey): string {
  return `${namespace}/${name}`;
}

interface Turn {
  report: SetReport;
  /** when it ended last, on the pass's clock */
  endedAtMs: number;
  following?: Promise<void> | undefined;
}

class Turns extends Map<string, Turn> {
  /** how many are followed now */
  followed = 0;
}

/** Ends when nothing is under way any more, or the time is up. Trouble with one set is in its report. */
export async function serveSets(service: SetService, keys: readonly SetKey[]): Promise<readonly SetReport[]> {
  const turns = new Turns();
  await takeTurns(service, turns, keys);
  for (;;) {
    const following = [...turns.values()].flatMap((turn) => turn.following ?? []);
    if (following.length === 0) return [...turns.values()].map(({ report }) => report);
    const all = Promise.all(following);
    if (!service.isRescanning || !isTimeLeft(service)) await all;
    else if ((await firstOf(service, all)) === "rescan") await takeTurns(service, turns, await dueSets(service, turns));
  }
}

async function firstOf({ clock }: SetService, all: Promise<unknown>): Promise<"all" | "rescan"> {
  const done = new AbortController();
  const rescan = clock.sleep(RESCAN_MS, done.signal).then(() => "rescan" as const);
  const first = await Promise.race([all.then(() => "all" as const), rescan]);
  done.abort();
  return first;
}

/** StatefulSets that are new, have changed, or have not been reconciled for a while. */
async function dueSets(service: SetService, turns: Turns): Promise<readonly SetKey[]> {
  const isDue = (listed: ListedSet) => {
    const turn = turns.get(textOf(listed));
    if (!turn) return true;
    if (turn.following) return false;
    return turn.report.generation !== listed.generation || service.clock.now() - turn.endedAtMs >= RETURN_MS;
  };
  try {
    return ((await listSets(service.cluster)) ?? []).filter(isDue);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    if (!service.problems.includes(problem)) service.problems.push(problem);
    return [];
  }
}

async function takeTurns(service: SetService, turns: Turns, keys: readonly SetKey[]): Promise<void> {
  await mapLimited(keys, BEGUN_AT_ONCE, async (key) => {
    if (isTimeLeft(service)) await takeTurn(service, turns, key);
    else if (!turns.has(textOf(key))) service.notReached.push(textOf(key));
  });
}

async function takeTurn(service: SetService, turns: Turns, { namespace, name }: SetKey): Promise<void> {
  const { clock, cluster, gates } = service;
  const key = { namespace, name };
  service.cursor = textOf(key);
  const context: SetContext = { cluster, clock, gates, key, tally: newSetTally(), told: new Set() };
  const begun = await begin(service, context);
  const turn: Turn = { report: begun.report, endedAtMs: clock.now() };
  turns.set(textOf(key), turn);
  if (!service.isFollowing || turns.followed >= FOLLOWED_AT_ONCE || !(begun.progress || begun.trouble)) return;
  turns.followed++;
  turn.following = persist(service, context, begun).then((last) => {
    turn.report = last.report;
    turn.endedAtMs = clock.now();
    turn.following = undefined;
    turns.followed--;
  });
}

/** How far a set has come in this pass. */
interface Stand {
  readonly report: SetReport;
  /** set when there is something to go on with */
  readonly progress?: SetProgress;
  /** set when it is worth beginning again soon */
  readonly trouble?: KubeError;
}

/** Follows to the end, and begins again as long as nothing but trouble with the API server is in the way. */
async function persist(service: SetService, context: SetContext, begun: Stand): Promise<Stand> {
  let stand = begun;
  for (let failures = 0; ; failures++) {
    if (stand.progress) {
      failures = 0;
      stand = await follow(service, context, stand.progress);
    }
    if (!stand.trouble || failures === MAX_RETRIES) return stand;
    const { retryAfterSeconds = 0 } = stand.trouble;
    const waitMs = Math.max(FIRST_RETRY_MS * 2 ** failures, 1000 * retryAfterSeconds);
    await context.clock.sleep(Math.min(waitMs, MAX_RETRY_MS), service.limits.signal);
    if (!isTimeLeft(service)) return stand;
    stand = await begin(service, context);
  }
}

async function begin(service: SetService, context: SetContext): Promise<Stand> {
  try {
    if (service.isDryRun) return { report: await planSetOnly(context, service.plan) };
    const progress = await beginSet(context);
    if (typeof progress === "string") return { report: reportOn(context, progress) };
    return { report: reportOn(context, "oneRound", progress), progress };
  } catch (error) {
    return failed(context, error);
  }
}

async function follow({ limits }: SetService, context: SetContext, progress: SetProgress): Promise<Stand> {
  try {
    const end = await followSet(context, progress, limits);
    return { report: reportOn(context, end.stop, end.progress) };
  } catch (error) {
    return failed(context, error);
  }
}

/** A pass that could not go on has failed, whatever else ended it. */
function reportOn({ key, tally }: SetContext, stop: Stop, progress?: SetProgress): SetReport {
  if (!progress) return { ...key, stop, why: explainStop(stop, undefined), tally };
  const { round, standing } = progress;
  const failure = round.outcome.failure?.message;
  const { status } = round;
  const { metadata } = round.look.set;
  const end = failure === undefined ? stop : "failed";
  const why = explainStop(end, standing, failure);
  const generation = metadata?.generation ?? 0;
  return { ...key, stop: end, why, generation, ...(status ? { status } : {}), standing, tally };
}

/** Whatever goes wrong with one set, a bug of ours too, concerns no other. */
function failed({ key, tally }: SetContext, error: unknown): Stand {
  const stop = error instanceof KubeError && error.reason === "DeadlineExceeded" ? "deadline" : "failed";
  const help = isKubeError(error, 403) ? "; infra/rbac/optional/ordered-sets.yaml grants what is missing" : "";
  const why = `${error instanceof Error ? error.message : String(error)}${help}`;
  return { report: { ...key, stop, why, tally }, ...(isPassing(error) ? { trouble: error } : {}) };
}

function isTimeLeft({ limits, clock }: SetService): boolean {
  return limits.signal?.aborted !== true && clock.now() <= limits.endsAtMs - LAST_BEGIN_MS;
}
