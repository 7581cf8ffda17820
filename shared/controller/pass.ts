/** One pass over all SidecarSets, each on its own, within a deadline. */
import type { Gates } from "../approval/batch-gates.ts";
import type { RolloutSettings } from "../core/rollout/rollout-settings.ts";
import { type Ending, withDoing } from "../doings.ts";
import { isKubeError } from "../kube/error.ts";
import type { Cluster } from "../kube/port.ts";
import { recreateContainers } from "./container-recreate/recreate-containers.ts";
import { launchPods } from "./launch-priority/launch-pods.ts";
import { type Clock, systemClock, timestamp } from "./loop/clock.ts";
import { type LeaseSite, type OverPasses, readLease, renewLease, underLease } from "./loop/lease.ts";
import { type Calls, LATE_MS, meteredCluster, RetryAfter } from "./loop/metered.ts";
import { messageOf, note } from "./loop/problems.ts";
import { fromCursor } from "./loop/round-robin.ts";
import { openReadiness } from "./open-readiness.ts";
import { type PlanWish, READY_AFTER_SECONDS } from "./rollout/dry-run.ts";
import { keepRegistration } from "./rollout/keep-registration.ts";
import type { Readings } from "./rollout/reading.ts";
import { listSidecarSets, reconcileSidecarSets } from "./rollout/reconcile.ts";
import type { PassReport } from "./rollout/report.ts";
import type { Service } from "./rollout/service.ts";
import { terminateSidecars } from "./sidecar-terminator/terminate-sidecars.ts";

export interface PassOptions {
  /** how long the pass may take, from its beginning */
  readonly deadlineMs: number;
  /** where ControllerRevisions, ledgers and the Lease live */
  readonly kruiseNamespace: string;
  /** only this one; whether another pass holds the Lease does not matter then */
  readonly sidecarSet?: string;
  /** true: another process reconciles SidecarSets; all the rest of a pass is done */
  readonly withoutSidecarSets?: boolean;
  /** true: nothing but pods whose containers start in an order is served */
  readonly onlyLaunches?: boolean;
  /** writes nothing at all; the report lists what would be done now */
  readonly dryRun?: boolean;
  /** a dry run of one SidecarSet: what to take for granted when it looks ahead */
  readonly plan?: PlanWish | undefined;
  /** false: one round for each SidecarSet */
  readonly follow: boolean;
  readonly settings: RolloutSettings;
  /** how gates are asked, and what the process remembers of them; absent: none may be asked */
  readonly gates?: Gates | undefined;
  /** the condition of the pod webhook's registration is kept up to date with the SidecarSets */
  readonly isKeepingRegistration?: boolean;
  readonly clock?: Clock;
  /** ends the pass early, between two rounds */
  readonly signal?: AbortSignal;
  /** what the process remembers from one pass to the next; default: what this one does */
  readonly memory?: PassMemory;
}

/** All of it may be lost: then more is read, or waited for, than has to be. */
export interface PassMemory {
  readonly over: OverPasses;
  readonly readings: Readings;
}

export function newPassMemory(): PassMemory {
  return { over: new Set(), readings: new Map() };
}

const MEMORY = newPassMemory();

/** Resolves whatever happens in the cluster: trouble stands in the report. Killing it at any time is safe. */
export function runPass(cluster: Cluster, options: PassOptions): Promise<PassReport> {
  const { sidecarSet, dryRun = false } = options;
  const values = { "sidecarset.pass.dry_run": dryRun, "sidecarset.name": sidecarSet };
  return withDoing("pass", values, () => runPassNow(cluster, options), endingOf);
}

function endingOf({ sidecarSets, notReached, heldBy, problems, failure }: PassReport): Ending {
  const values = {
    "sidecarset.pass.sidecarsets": sidecarSets.length,
    "sidecarset.pass.not_reached": notReached.length,
    "sidecarset.pass.held_by": heldBy,
  };
  return { values, problems, failure };
}

async function runPassNow(cluster: Cluster, options: PassOptions): Promise<PassReport> {
  const { kruiseNamespace, sidecarSet, signal, clock = systemClock, memory = MEMORY } = options;
  const { over, readings } = memory;
  const calls: Calls = {};
  const beganAtMs = clock.now();
  const endsAtMs = beganAtMs + options.deadlineMs;
  const startedAt = timestamp(clock);
  const ended = new AbortController();
  // So that the next pass begins where this one came to, whatever its time was used up by.
  const metering = { clock, over: ended.signal, calls, retryAfter: new RetryAfter(clock, ended.signal) };
  const lateCluster = meteredCluster(cluster, { ...metering, endsAtMs: endsAtMs + LATE_MS });
  const service: Service = {
    cluster: meteredCluster(cluster, { ...metering, endsAtMs }),
    lateCluster,
    clock,
    kruiseNamespace,
    limits: { endsAtMs, lastsMs: options.deadlineMs, ...(signal ? { signal } : {}) },
    isDryRun: options.dryRun === true,
    plan: sidecarSet === undefined ? undefined : (options.plan ?? { readyAfterSeconds: READY_AFTER_SECONDS }),
    isFollowing: options.follow,
    settings: options.settings,
    gates: options.gates,
    isKeepingRegistration: options.isKeepingRegistration === true,
    isRescanning: sidecarSet === undefined,
    problems: [],
    notReached: [],
    unread: [],
    failing: new Map(),
    readings,
    cursor: "",
  };
  const site: LeaseSite = {
    cluster: lateCluster,
    clock,
    namespace: kruiseNamespace,
    over,
    settings: options.settings,
  };
  const result = await serving(service, site, options)
    .catch((error: unknown) => {
      note(service, messageOf(error));
      // A cluster without the kind has none.
      return { sidecarSets: [], ...(isKubeError(error, 404) ? {} : { failure: messageOf(error) }) };
    })
    .finally(() => ended.abort());
  const { problems, notReached, unread, failing, isDryRun } = service;
  return {
    startedAt,
    durationMs: Math.round(clock.now() - beganAtMs),
    isDryRun,
    problems,
    notReached,
    unread,
    ...(failing.size > 0 ? { failing: Object.fromEntries(failing) } : {}),
    calls,
    ...result,
  };
}

type PassResult = Pick<
  PassReport,
  "sidecarSets" | "failure" | "heldBy" | "launches" | "recreations" | "terminations" | "readiness" | "registration"
>;

function serving(service: Service, site: LeaseSite, options: PassOptions): Promise<PassResult> {
  if (options.onlyLaunches) return serveLaunches(service);
  return options.withoutSidecarSets ? serveOthers(service, site) : serveLeased(service, site, options.sidecarSet);
}

async function serveLaunches(service: Service): Promise<PassResult> {
  return { sidecarSets: [], launches: await launchPods(service, AbortSignal.abort()) };
}

/** All there is to do in a pass that was not asked for one SidecarSet. */
async function serveAll(service: Service, names: readonly string[]): Promise<PassResult> {
  const served = new AbortController();
  const [sidecarSets, launches, recreations, terminations, readiness, registration] = await Promise.all([
    reconcileSidecarSets(service, names).finally(() => served.abort()),
    launchPods(service, served.signal),
    recreateContainers(service),
    service.settings.SidecarTerminator ? terminateSidecars(service, served.signal) : undefined,
    service.settings.KruisePodReadinessGate ? openReadiness(service, served.signal) : undefined,
    service.isKeepingRegistration ? keepRegistration(service) : undefined,
  ]);
  return {
    sidecarSets,
    launches,
    ...(recreations ? { recreations } : {}),
    ...(terminations ? { terminations } : {}),
    ...(readiness ? { readiness } : {}),
    ...(registration ? { registration } : {}),
  };
}

/** Whoever serves SidecarSets is called by the same schedule; that it runs stands in the Lease as ever. */
async function serveOthers(service: Service, site: LeaseSite): Promise<PassResult> {
  const result = await serveAll(service, []);
  if (!service.isDryRun) await renewLease(site).catch((error: unknown) => note(service, withoutLease(error)));
  return result;
}

function withoutLease(error: unknown): string {
  return `no Lease is used: ${messageOf(error)}`;
}

/** A dry run writes no Lease, and one SidecarSet asked for by name is served at once: the ledger keeps passes apart. */
async function serveLeased(service: Service, site: LeaseSite, sidecarSet: string | undefined): Promise<PassResult> {
  const { cluster, isDryRun } = service;
  if (sidecarSet !== undefined) return { sidecarSets: await reconcileSidecarSets(service, [sidecarSet]) };
  const lease = await readLease(site).catch((error: unknown) => {
    note(service, withoutLease(error));
    return undefined;
  });
  if (lease?.heldBy !== undefined && !isDryRun) return { sidecarSets: [], heldBy: lease.heldBy };
  const names = fromCursor(await listSidecarSets(cluster), lease?.cursor ?? "", service.clock);
  if (!lease || isDryRun) return await serveAll(service, names);
  service.cursor = names[0] ?? "";
  const result = await underLease(
    { site, state: lease },
    () => service.cursor,
    () => serveAll(service, names),
    (error) => note(service, withoutLease(error)),
  );
  return result ?? { sidecarSets: [], heldBy: "another pass" };
}
