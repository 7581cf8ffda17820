/** One pass over all SidecarSets, each on its own, within a deadline. */
import type { SidecarSet } from "../api/sidecarset.ts";
import { KubeError } from "../kube/error.ts";
import { type Cluster, SIDECARSETS } from "../kube/port.ts";
import { type Clock, systemClock, timestamp } from "./clock.ts";
import { mapLimited } from "./concurrency.ts";
import { planOnly } from "./dry-run.ts";
import { type LeaseState, readLease, takeLease } from "./lease.ts";
import { type RolloutContext, subjectOf } from "./look.ts";
import { type Calls, meteredCluster } from "./metered.ts";
import { listAll } from "./observe.ts";
import { explain, newTally, type PassReport, type SidecarSetReport, type Stop } from "./report.ts";
import { beginRollout, followRollout, type Limits, type Progress, settleRollout } from "./rollout.ts";

export interface PassOptions {
  /** how long the pass may take, from its beginning */
  readonly deadlineMs: number;
  /** where ControllerRevisions, ledgers and the Lease live */
  readonly kruiseNamespace: string;
  /** only this one; whether another pass holds the Lease does not matter then */
  readonly sidecarSet?: string;
  /** writes nothing at all; the report lists what would be done now */
  readonly dryRun?: boolean;
  /** false: one round for each SidecarSet */
  readonly follow: boolean;
  readonly clock?: Clock;
  /** ends the pass early, between two rounds */
  readonly signal?: AbortSignal;
}

/** First rounds at once, and rollouts followed at once: each of the latter holds a watch. */
const BEGUN_AT_ONCE = 4;
const FOLLOWED_AT_ONCE = 16;
/** Less time than this is not enough to begin with another SidecarSet. */
const LAST_BEGIN_MS = 3_000;

interface Pass {
  readonly options: PassOptions;
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly problems: string[];
  readonly notReached: string[];
  /** the SidecarSet whose turn came last */
  cursor: string;
}

/** Resolves whatever happens in the cluster: trouble stands in the report. Killing it at any time is safe. */
export async function runPass(cluster: Cluster, options: PassOptions): Promise<PassReport> {
  const clock = options.clock ?? systemClock;
  const calls: Calls = {};
  const beganAtMs = clock.now();
  const endsAtMs = beganAtMs + options.deadlineMs;
  const startedAt = timestamp(clock);
  const pass: Pass = {
    options,
    cluster: meteredCluster(cluster, clock, endsAtMs, calls),
    clock,
    limits: { endsAtMs, ...(options.signal ? { signal: options.signal } : {}) },
    problems: [],
    notReached: [],
    cursor: "",
  };
  const result = await leasedPass(pass).catch((error: unknown) => {
    pass.problems.push(messageOf(error));
    return { sidecarSets: [] };
  });
  const { problems, notReached } = pass;
  const durationMs = clock.now() - beganAtMs;
  return { startedAt, durationMs, isDryRun: options.dryRun === true, problems, notReached, calls, ...result };
}

type PassResult = Pick<PassReport, "sidecarSets" | "heldBy">;

/** A dry run writes no Lease, and one SidecarSet asked for by name is served at once: the ledger keeps passes apart. */
async function leasedPass(pass: Pass): Promise<PassResult> {
  const { cluster, clock, options } = pass;
  if (options.sidecarSet !== undefined) return { sidecarSets: await serve(pass, [options.sidecarSet]) };
  const lease = await readLease(cluster, clock, options.kruiseNamespace).catch((error: unknown) => {
    pass.problems.push(`no Lease is used: ${messageOf(error)}`);
    return undefined;
  });
  if (lease?.heldBy !== undefined && !options.dryRun) return { sidecarSets: [], heldBy: lease.heldBy };
  const names = inTurn(await sidecarSetNames(cluster), lease?.cursor ?? "");
  if (!lease || options.dryRun) return { sidecarSets: await serve(pass, names) };
  return await underLease(pass, lease, names);
}

async function underLease(pass: Pass, lease: LeaseState, names: readonly string[]): Promise<PassResult> {
  const { cluster, clock, options } = pass;
  pass.cursor = names[0] ?? "";
  const site = { cluster, clock, namespace: options.kruiseNamespace };
  const note = (error: unknown) => {
    pass.problems.push(`no Lease is used: ${messageOf(error)}`);
    return "none" as const;
  };
  const held = await takeLease(site, lease, pass.cursor).catch(note);
  if (!held) return { sidecarSets: [], heldBy: "another pass" };
  if (held === "none") return { sidecarSets: await serve(pass, names) };
  const over = new AbortController();
  const keeping = held.keep(() => pass.cursor, over.signal).catch(note);
  try {
    return { sidecarSets: await serve(pass, names) };
  } finally {
    over.abort();
    await keeping;
    await held.release(pass.cursor).catch(note);
  }
}

async function sidecarSetNames(cluster: Cluster): Promise<readonly string[]> {
  const { items } = await listAll<SidecarSet, string>(cluster, SIDECARSETS, {}, ({ metadata }) => metadata?.name);
  return [...items].sort();
}

/** Whose turn came last has waited least: those behind it in the alphabet come first. */
function inTurn(names: readonly string[], cursor: string): readonly string[] {
  return [...names.filter((name) => name > cursor), ...names.filter((name) => name <= cursor)];
}

/** First one round for each, so that no slow rollout keeps the others waiting; then all that can go on are followed. */
async function serve(pass: Pass, names: readonly string[]): Promise<readonly SidecarSetReport[]> {
  const begun = await mapLimited(names, BEGUN_AT_ONCE, (name) => begin(pass, name));
  const reached = begun.filter((rollout) => rollout !== undefined);
  return await mapLimited(reached, FOLLOWED_AT_ONCE, (rollout) => finish(pass, rollout));
}

/** A rollout after its first round, or already at its end. */
type Begun =
  | { readonly context: RolloutContext; readonly progress: Progress }
  | { readonly context: RolloutContext; readonly report: SidecarSetReport };

async function begin(pass: Pass, name: string): Promise<Begun | undefined> {
  const { clock, cluster, limits, options } = pass;
  if (limits.signal?.aborted || clock.now() > limits.endsAtMs - LAST_BEGIN_MS) {
    pass.notReached.push(name);
    return undefined;
  }
  pass.cursor = name;
  const { kruiseNamespace } = options;
  const context: RolloutContext = { cluster, clock, kruiseNamespace, tally: newTally(), told: new Set() };
  try {
    if (options.dryRun) return { context, report: await planOnly(context, name) };
    const progress = await beginRollout(context, name);
    if (typeof progress === "string") return { context, report: reportOn(context, name, progress) };
    return { context, progress };
  } catch (error) {
    return { context, report: failed(context, name, error) };
  }
}

async function finish({ options, limits }: Pass, begun: Begun): Promise<SidecarSetReport> {
  if ("report" in begun) return begun.report;
  const { context, progress } = begun;
  const name = progress.look.sidecarSet.metadata?.name ?? "";
  try {
    const end = options.follow
      ? await followRollout(context, progress, limits)
      : { stop: "oneRound" as const, progress };
    const last = await settleRollout(context, end.progress);
    return reportOn(context, name, end.stop, last);
  } catch (error) {
    return failed(context, name, error);
  }
}

function reportOn({ tally }: RolloutContext, name: string, stop: Stop, progress?: Progress): SidecarSetReport {
  if (!progress) return { name, stop, why: explain(stop, undefined), tally };
  const { look, result } = progress;
  const { status, summary } = result.decision;
  const { generation } = subjectOf(look.sidecarSet);
  const why = explain(stop, summary);
  return { name, stop, why, generation, status, summary, tally };
}

/** Whatever goes wrong with one SidecarSet, a bug of ours too, concerns no other. */
function failed({ tally }: RolloutContext, name: string, error: unknown): SidecarSetReport {
  const stop = error instanceof KubeError && error.reason === "DeadlineExceeded" ? "deadline" : "failed";
  return { name, stop, why: messageOf(error), tally };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
