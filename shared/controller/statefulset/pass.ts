/** One pass over all ordered sets, each on its own, within a deadline. */
import type { OrderedSetGates } from "../../core/statefulset/gates.ts";
import { type Ending, told } from "../../doings.ts";
import type { Cluster } from "../../kube/port.ts";
import { type Clock, systemClock, timestamp } from "../loop/clock.ts";
import { type LeaseSite, type LeaseState, type OverPasses, readLease, SET_LEASE, takeLease } from "../loop/lease.ts";
import { type Calls, meteredCluster } from "../loop/metered.ts";
import { READY_AFTER_SECONDS } from "../rollout/dry-run.ts";
import type { SetPlanWish } from "./dry-run.ts";
import type { SetKey } from "./look.ts";
import type { SetPassReport } from "./report.ts";
import { type ListedSet, listSets, type SetService, serveSets, textOf } from "./serve.ts";

export interface SetPassOptions {
  /** how long the pass may take, from its beginning */
  readonly deadlineMs: number;
  /** where the Lease is */
  readonly kruiseNamespace: string;
  readonly gates: OrderedSetGates;
  /** only this one; whether another pass holds the Lease does not matter then */
  readonly set?: SetKey;
  /** writes nothing at all; the report lists what would be done now */
  readonly dryRun?: boolean;
  /** dry run of one set: what to take for granted when it looks ahead */
  readonly plan?: SetPlanWish;
  /** false: one round for each set */
  readonly follow: boolean;
  readonly clock?: Clock;
  /** ends the pass early, between two rounds */
  readonly signal?: AbortSignal;
  /** what the process remembers from one pass to the next; default: what this one does */
  readonly over?: OverPasses;
}

const OVER_PASSES: OverPasses = new Set();

/** Resolves whatever happens in the cluster: trouble stands in the report. Killing it at any time is safe. */
export function runSetPass(cluster: Cluster, options: SetPassOptions): Promise<SetPassReport> {
  const values = { "sidecarset.pass.dry_run": options.dryRun === true };
  return told("ordered-set pass", values, () => runSetPassNow(cluster, options), endingOf);
}

function endingOf({ sets, notReached, heldBy, problems }: SetPassReport): Ending {
  const failed = sets
    .filter(({ stop }) => stop === "failed")
    .map(({ namespace, name, why }) => `${namespace}/${name}: ${why}`);
  const values = {
    "sidecarset.pass.sets": sets.length,
    "sidecarset.pass.not_reached": notReached.length,
    "sidecarset.pass.held_by": heldBy,
  };
  return { values, problems: [...problems, ...failed] };
}

async function runSetPassNow(cluster: Cluster, options: SetPassOptions): Promise<SetPassReport> {
  const { kruiseNamespace: namespace, gates, set, signal, clock = systemClock, over = OVER_PASSES } = options;
  const calls: Calls = {};
  const beganAtMs = clock.now();
  const endsAtMs = beganAtMs + options.deadlineMs;
  const startedAt = timestamp(clock);
  const ended = new AbortController();
  const service: SetService = {
    cluster: meteredCluster(cluster, { clock, endsAtMs, over: ended.signal, calls }),
    clock,
    gates,
    limits: { endsAtMs, ...(signal ? { signal } : {}) },
    isDryRun: options.dryRun === true,
    ...(set ? { plan: options.plan ?? { readyAfterSeconds: READY_AFTER_SECONDS } } : {}),
    isFollowing: options.follow,
    isRescanning: set === undefined,
    problems: [],
    notReached: [],
    cursor: "",
  };
  const site: LeaseSite = { cluster: service.cluster, clock, namespace, over, name: SET_LEASE };
  const serving = set ? serveSets(service, [set]).then((sets) => ({ sets })) : serveListed(service, site);
  const result = await serving
    .catch((error: unknown) => {
      note(service, error);
      return { sets: [] };
    })
    .finally(() => ended.abort());
  const { problems, notReached, isDryRun } = service;
  return {
    startedAt,
    durationMs: Math.round(clock.now() - beganAtMs),
    isDryRun,
    problems,
    notReached,
    calls,
    ...result,
  };
}

type PassResult = Pick<SetPassReport, "sets" | "heldBy">;

/** A cluster without ordered sets costs one call. */
async function serveListed(service: SetService, site: LeaseSite): Promise<PassResult> {
  const listed = await listSets(service.cluster);
  if (!listed || listed.length === 0) return { sets: [] };
  const lease = await readLease(site).catch((error: unknown) => {
    note(service, error, "no Lease is used: ");
    return undefined;
  });
  const keys = inTurn(listed, lease?.cursor ?? "");
  if (service.isDryRun || !lease) return { sets: await serveSets(service, keys) };
  if (lease.heldBy !== undefined) return { sets: [], heldBy: lease.heldBy };
  return await serveUnder(service, { site, lease }, keys);
}

async function serveUnder(
  service: SetService,
  { site, lease }: { readonly site: LeaseSite; readonly lease: LeaseState },
  keys: readonly SetKey[],
): Promise<PassResult> {
  const without = (error: unknown) => {
    note(service, error, "no Lease is used: ");
    return "none" as const;
  };
  service.cursor = keys[0] ? textOf(keys[0]) : "";
  const held = await takeLease(site, lease, service.cursor).catch(without);
  if (!held) return { sets: [], heldBy: "another pass" };
  if (held === "none") return { sets: await serveSets(service, keys) };
  const over = new AbortController();
  const keeping = held.keep(() => service.cursor, over.signal).catch(without);
  try {
    return { sets: await serveSets(service, keys) };
  } finally {
    over.abort();
    await keeping;
    await held.release(service.cursor).catch(without);
  }
}

/** Round-robin: continue after the last one, in the order of the alphabet. */
function inTurn(listed: readonly ListedSet[], cursor: string): readonly SetKey[] {
  const sorted = listed.toSorted((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
  return [...sorted.filter((one) => textOf(one) > cursor), ...sorted.filter((one) => textOf(one) <= cursor)];
}

/** The same trouble is told once. */
function note({ problems }: Pick<SetService, "problems">, error: unknown, before = ""): void {
  const problem = `${before}${error instanceof Error ? error.message : String(error)}`;
  if (!problems.includes(problem)) problems.push(problem);
}
