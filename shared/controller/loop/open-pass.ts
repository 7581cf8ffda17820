/** Opens a pass of any kind, with a deadline, counted calls and the Lease. */
import type { Cluster } from "../../kube/port.ts";
import { type Clock, type Limits, systemClock, timestamp } from "./clock.ts";
import { holdLease, type LeaseSite, type LeaseState, readLease } from "./lease.ts";
import { type Calls, LATE_MS, meteredCluster, RetryAfter } from "./metered.ts";
import { fromCursor, type Listed, type LoopService } from "./round-robin.ts";

export interface AnyPassOptions {
  /** milliseconds that the pass may take, from its start */
  readonly deadlineMs: number;
  /** namespace of ControllerRevisions, ledgers and the Lease */
  readonly kruiseNamespace: string;
  /** true: the pass writes nothing, and the report lists the actions */
  readonly dryRun?: boolean;
  /** false: one round for each object, without following it */
  readonly follow: boolean;
  readonly clock?: Clock;
  /** ends the pass early, between two rounds */
  readonly signal?: AbortSignal;
}

export interface PassService extends LoopService {
  readonly cluster: Cluster;
  /** the same cluster, with a little more time than the pass */
  readonly lateCluster: Cluster;
  readonly limits: Limits & { readonly lastsMs: number };
  readonly isDryRun: boolean;
}

/** `isRescanning`: the pass serves all objects, not a named one. */
export function openPass(cluster: Cluster, options: AnyPassOptions, isRescanning: boolean) {
  const { deadlineMs, signal, clock = systemClock } = options;
  const calls: Calls = {};
  const beganAtMs = clock.now();
  const endsAtMs = beganAtMs + deadlineMs;
  const startedAt = timestamp(clock);
  const ended = new AbortController();
  const metering = { clock, over: ended.signal, calls, retryAfter: new RetryAfter(clock, ended.signal) };
  const service: PassService = {
    cluster: meteredCluster(cluster, { ...metering, endsAtMs }),
    // The next pass must begin where this one ended, even if this one used all its time.
    lateCluster: meteredCluster(cluster, { ...metering, endsAtMs: endsAtMs + LATE_MS }),
    clock,
    limits: { endsAtMs, lastsMs: deadlineMs, ...(signal ? { signal } : {}) },
    isDryRun: options.dryRun === true,
    isFollowing: options.follow,
    isRescanning,
    problems: [],
    notReached: [],
    cursor: "",
  };
  const { problems, notReached, isDryRun } = service;
  return {
    service,
    calls,
    /** all waits end */
    end: () => ended.abort(),
    report: () => ({
      startedAt,
      durationMs: Math.round(clock.now() - beganAtMs),
      isDryRun,
      problems,
      notReached,
    }),
  };
}

interface Turn<Result> {
  /** result of a pass that left all work to another pass */
  readonly none: Result;
  /** lists the keys; `lease`: the Lease as it was read; undefined: it could not be read */
  readonly list: (lease: LeaseState | undefined) => Promise<readonly Listed[]>;
  /** serves the objects; `renew` writes the Lease at once, with the present state */
  readonly serve: (keys: readonly string[], renew: () => Promise<void>) => Promise<Result>;
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Serves all objects, from the end of the last pass, while this pass holds the Lease. If no Lease can be had, it serves
 * them anyway. A dry run writes no Lease.
 */
export async function serveInTurn<Result extends { readonly heldBy?: string }>(
  site: LeaseSite,
  service: PassService,
  { none, list, serve, onTrouble }: Turn<Result>,
): Promise<Result> {
  const { isDryRun, clock } = service;
  const lease = await readLease(site).catch((error: unknown) => void onTrouble(error));
  if (lease?.heldBy !== undefined && !isDryRun) return { ...none, heldBy: lease.heldBy };
  const keys = fromCursor(await list(lease ?? undefined), lease?.cursor ?? "", clock);
  if (!lease || isDryRun) return await serve(keys, async () => undefined);
  service.cursor = keys[0] ?? "";
  const held = await holdLease({ site, state: lease }, () => service.cursor, onTrouble);
  if (!held) return { ...none, heldBy: "another pass" };
  return await serve(keys, held.renew).finally(held.end);
}
