/** One pass over all Advanced StatefulSets, each on its own, within a deadline. */
import type { StatefulSetFeatureGates } from "../../core/statefulset/step.ts";
import { type Ending, withDoing } from "../../doings.ts";
import type { Cluster } from "../../kube/port.ts";
import { type Clock, systemClock, timestamp } from "../loop/clock.ts";
import { type LeaseSite, type OverPasses, readLease, SET_LEASE, underLease } from "../loop/lease.ts";
import { type Calls, LATE_MS, meteredCluster, RetryAfter } from "../loop/metered.ts";
import { messageOf, note } from "../loop/problems.ts";
import { fromCursor } from "../loop/round-robin.ts";
import { READY_AFTER_SECONDS } from "../rollout/dry-run.ts";
import type { SetPlanWish } from "./dry-run.ts";
import type { SetKey } from "./observe.ts";
import { keyText, listSets, reconcileSets, type SetService } from "./reconcile.ts";
import type { SetPassReport } from "./report.ts";

export interface SetPassOptions {
  /** how long the pass may take, from its beginning */
  readonly deadlineMs: number;
  /** where the Lease is */
  readonly kruiseNamespace: string;
  readonly gates: StatefulSetFeatureGates;
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
  return withDoing("ordered-set pass", values, () => runSetPassNow(cluster, options), endingOf);
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
  const metering = { clock, over: ended.signal, calls, retryAfter: new RetryAfter(clock, ended.signal) };
  const service: SetService = {
    cluster: meteredCluster(cluster, { ...metering, endsAtMs }),
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
  // So that the next pass begins where this one came to, whatever its time was used up by.
  const lateCluster = meteredCluster(cluster, { ...metering, endsAtMs: endsAtMs + LATE_MS });
  const site: LeaseSite = { cluster: lateCluster, clock, namespace, over, name: SET_LEASE };
  const serving = set ? reconcileSets(service, [keyText(set)]).then((sets) => ({ sets })) : serveListed(service, site);
  const result = await serving
    .catch((error: unknown) => {
      note(service, messageOf(error));
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

/** A cluster without Advanced StatefulSets costs one call. */
async function serveListed(service: SetService, site: LeaseSite): Promise<PassResult> {
  const listed = await listSets(service.cluster);
  if (!listed || listed.length === 0) return { sets: [] };
  const onTrouble = (error: unknown) => note(service, `no Lease is used: ${messageOf(error)}`);
  const lease = await readLease(site).catch(onTrouble);
  const keys = fromCursor(listed, lease?.cursor ?? "", service.clock);
  const reconcile = async (): Promise<PassResult> => ({ sets: await reconcileSets(service, keys) });
  if (service.isDryRun || !lease) return await reconcile();
  if (lease.heldBy !== undefined) return { sets: [], heldBy: lease.heldBy };
  service.cursor = keys[0] ?? "";
  const result = await underLease({ site, state: lease }, () => service.cursor, reconcile, onTrouble);
  return result ?? { sets: [], heldBy: "another pass" };
}
