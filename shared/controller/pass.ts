/** One pass over all SidecarSets within a deadline. Each SidecarSet is served independently. */

import type { Pod } from "../api/kubernetes.ts";
import { POD_READY_CONDITION } from "../api/names.ts";
import type { Gates } from "../approval/batch-gates.ts";
import { podName } from "../core/pod/is-matched.ts";
import { conditionOf } from "../core/pod/is-ready.ts";
import { uidOf } from "../core/pod/pod-state.ts";
import type { RolloutSettings } from "../core/rollout/rollout-settings.ts";
import { withOpenGate } from "../core/statefulset/pods/pod-phase.ts";
import { type Ending, withDoing } from "../doings.ts";
import { ifThere, isKubeError } from "../kube/error.ts";
import { type Cluster, PODS } from "../kube/port.ts";
import { recreateContainers } from "./container-recreate/recreate-containers.ts";
import { launchPods } from "./launch-priority/launch-pods.ts";
import { errorMessage, note, timestamp } from "./loop/clock.ts";
import { openFeed } from "./loop/event-feed.ts";
import { namespaceOf, serveInTurns } from "./loop/fair-turns.ts";
import { type LeaseSite, noteDrains, type OverPasses, renewLease } from "./loop/lease.ts";
import { type AnyPassOptions, openPass, serveInTurn } from "./loop/open-pass.ts";
import { type PlanWish, READY_AFTER_SECONDS } from "./rollout/dry-run.ts";
import { keepRegistration } from "./rollout/keep-registration.ts";
import { listAll } from "./rollout/observe-pods.ts";
import { putBackLeft } from "./rollout/put-back.ts";
import type { Readings } from "./rollout/reading.ts";
import { listSidecarSets, reconcileSidecarSets } from "./rollout/reconcile.ts";
import type { PassReport, ReadinessReport, SidecarSetReport } from "./rollout/report.ts";
import type { Service } from "./rollout/service.ts";
import { terminateSidecars } from "./sidecar-terminator/terminate-sidecars.ts";

export interface PassOptions extends AnyPassOptions {
  /** name of the only SidecarSet to serve, even if another pass holds the Lease */
  readonly sidecarSet?: string;
  /** true: another process reconciles SidecarSets, and this pass does the rest */
  readonly withoutSidecarSets?: boolean;
  /** true: the pass serves only pods with a launch order */
  readonly onlyLaunches?: boolean;
  /** for a dry run of one SidecarSet: the assumptions of its plan */
  readonly plan?: PlanWish | undefined;
  readonly settings: RolloutSettings;
  /** how to ask gates, and their recorded answers; absent: no gate may be asked */
  readonly gates?: Gates | undefined;
  /** true: the pass updates the condition of the pod webhook's registration */
  readonly isKeepingRegistration?: boolean;
  /** the process's data between passes; absent: a common one */
  readonly memory?: PassMemory;
}

/** Data of a process between passes. If it is lost, a pass reads more, or waits longer, than necessary. */
export interface PassMemory {
  readonly over: OverPasses;
  readonly readings: Readings;
}

export function newPassMemory(): PassMemory {
  return { over: new Set(), readings: new Map() };
}

const MEMORY = newPassMemory();

/** Makes a pass. It always resolves: problems go into the report. A pass can safely be killed at any time. */
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
  const { kruiseNamespace, sidecarSet, settings, memory = MEMORY } = options;
  const { over, readings } = memory;
  const pass = openPass(cluster, options, sidecarSet === undefined);
  const unread: string[] = [];
  const failing = new Map<string, string>();
  const service: Service = {
    ...pass.service,
    kruiseNamespace,
    plan: sidecarSet === undefined ? undefined : (options.plan ?? { readyAfterSeconds: READY_AFTER_SECONDS }),
    settings,
    gates: options.gates,
    isKeepingRegistration: options.isKeepingRegistration === true,
    unread,
    failing,
    readings,
  };
  const { lateCluster, clock } = service;
  const site: LeaseSite = { cluster: lateCluster, clock, namespace: kruiseNamespace, over, settings };
  const result = await serving(service, site, options)
    .catch((error: unknown) => {
      note(service, errorMessage(error));
      // A cluster without the kind has no SidecarSets.
      return { sidecarSets: [], ...(isKubeError(error, 404) ? {} : { failure: errorMessage(error) }) };
    })
    .finally(pass.end);
  const { calls } = pass;
  return {
    ...pass.report(),
    unread,
    ...(failing.size > 0 ? { failing: Object.fromEntries(failing) } : {}),
    calls,
    ...result,
    sidecarSets: result.sidecarSets.map((one) => (failing.has(one.name) ? asFailing(one, unread) : one)),
  };
}

/** The report with the state that the status has after failures, if passes can write it. */
function asFailing(one: SidecarSetReport, unread: readonly string[]): SidecarSetReport {
  return { state: "Blocked", ...(unread.includes(one.name) ? { cause: "PassTooShort" as const } : {}), ...one };
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

/** The work of a pass that is not for one SidecarSet only. */
async function serveAll(
  service: Service,
  names: readonly string[],
  drains?: { isAsked: boolean; mayDrain: boolean },
): Promise<PassResult> {
  const served = new AbortController();
  const [sidecarSets, launches, recreations, terminations, readiness, registration] = await Promise.all([
    reconcileSidecarSets(service, names).finally(() => served.abort()),
    launchPods(service, served.signal),
    recreateContainers(service),
    service.settings.SidecarTerminator ? terminateSidecars(service, served.signal) : undefined,
    service.settings.KruisePodReadinessGate ? openReadiness(service, served.signal) : undefined,
    service.isKeepingRegistration ? keepRegistration(service) : undefined,
    drains?.mayDrain
      ? putBackLeft(service).then((isLeft) => {
          drains.mayDrain = drains.isAsked || isLeft;
        })
      : undefined,
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

/** Serves only the other controllers. The same schedule calls this pass, and the Lease records it as usual. */
async function serveOthers(service: Service, site: LeaseSite): Promise<PassResult> {
  const result = await serveAll(service, []);
  if (!service.isDryRun) await renewLease(site).catch((error: unknown) => note(service, withoutLease(error)));
  return result;
}

function withoutLease(error: unknown): string {
  return `no Lease is used: ${errorMessage(error)}`;
}

async function serveNamed(service: Service, site: LeaseSite, name: string): Promise<PassResult> {
  let noted: Promise<void> | undefined;
  service.beforeDrain = () => {
    noted ??= noteDrains(site).catch((error: unknown) => note(service, withoutLease(error)));
    return noted;
  };
  return { sidecarSets: await reconcileSidecarSets(service, [name]) };
}

/** Serves a SidecarSet that is named in the call, at once. The ledger separates passes. */
function serveLeased(service: Service, site: LeaseSite, sidecarSet: string | undefined): Promise<PassResult> {
  if (sidecarSet !== undefined) return serveNamed(service, site, sidecarSet);
  const drains = { isAsked: false, mayDrain: false };
  return serveInTurn<PassResult>({ ...site, drains }, service, {
    none: { sidecarSets: [] },
    list: async (lease) => {
      const listed = await listSidecarSets(service.cluster);
      drains.isAsked = listed.some(({ isDraining }) => isDraining);
      // Without a Lease it is unknown whether a pod is drained, so passes look.
      drains.mayDrain = drains.isAsked || lease?.stored === undefined || lease.mayDrain === true;
      return listed;
    },
    serve: (names, renew) => {
      let noted: Promise<void> | undefined;
      // A SidecarSet may ask for drains after the list. A later pass looks even if this one is killed.
      service.beforeDrain = async () => {
        const isNoted = drains.isAsked;
        Object.assign(drains, { isAsked: true, mayDrain: true });
        if (!isNoted) noted = renew();
        await noted;
      };
      return serveAll(service, names, drains);
    },
    onTrouble: (error) => {
      drains.mayDrain = true;
      note(service, withoutLease(error));
    },
  });
}

// Sets the readiness condition of the gate KruisePodReadinessGate on pods of any owner. No other code does.

/** Selects all unfinished pods, because no field selector finds pods that wait for their gate. */
const UNFINISHED = { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" };
/** Selects pending pods. Every pod begins in this phase, so a watch reports all new pods. */
const NEW = { fieldSelector: "status.phase=Pending" };
const PODS_AT_ONCE = 16;
/** Limit of tries, because scheduler and kubelet write to a starting pod at the same time. */
const MAX_TRIES = 5;
const NEWS_MS = 1_000;
/** Milliseconds between lists after the watch is lost. */
const RELIST_MS = 30_000;

interface Opening {
  readonly service: Service;
  readonly report: ReadinessReport;
  /** pods with a failed write, by uid */
  readonly failed: Map<string, { readonly pod: Pod; readonly error: unknown }>;
  /** pods for the next round, by uid: too many pods of their namespace failed or were slow */
  readonly left: Map<string, Pod>;
}

/** Lists all pods, then watches new ones until `served` signals the end. Problems go into the service's list. */
export async function openReadiness(service: Service, served: AbortSignal): Promise<ReadinessReport> {
  const opening: Opening = { service, report: { opened: 0 }, failed: new Map(), left: new Map() };
  try {
    if (service.isDryRun) opening.report.planned = (await listWaiting(service)).items.map(planned);
    else await run(opening, served);
  } catch (error) {
    note(service, `pods are not given the condition ${POD_READY_CONDITION}: ${errorMessage(error)}`);
  }
  noteFailures(opening);
  return opening.report;
}

async function run(opening: Opening, served: AbortSignal): Promise<void> {
  const { service } = opening;
  for (;;) {
    const { items, resourceVersion } = await listWaiting(service);
    await openAll(opening, items);
    if (!service.isFollowing || served.aborted) return;
    await follow(opening, resourceVersion, served);
    await service.clock.sleep(RELIST_MS, served);
    if (served.aborted) return;
  }
}

/** Follows pods until the watch is lost, or the rest of the pass has ended. */
async function follow(opening: Opening, resourceVersion: string, served: AbortSignal): Promise<void> {
  const feed = openFeed<Pod>(opening.service, PODS, { ...NEW, resourceVersion }, projected);
  try {
    while (!served.aborted && (await feed.wait(NEWS_MS, served))) {
      const newest = new Map(opening.left);
      for (const { object } of feed.take()) newest.set(uidOf(object), object);
      await openAll(opening, [...newest.values()].filter(isWaiting));
    }
  } finally {
    feed.close();
  }
}

function listWaiting({ cluster }: Service) {
  return listAll<Pod, Pod>(cluster, PODS, UNFINISHED, (pod) => (isWaiting(pod) ? projected(pod) : undefined));
}

function isWaiting(pod: Pod): boolean {
  return withOpenGate(pod, "") !== pod;
}

/** The fields that the decision and the write need. */
function projected(pod: Pod): Pod {
  const { namespace = "", name = "", uid = "", resourceVersion = "", deletionTimestamp } = pod.metadata ?? {};
  const hold = conditionOf(pod, POD_READY_CONDITION);
  return {
    metadata: { namespace, name, uid, resourceVersion, ...(deletionTimestamp ? { deletionTimestamp } : {}) },
    spec: { containers: [], readinessGates: pod.spec.readinessGates ?? [] },
    status: { conditions: hold ? [hold] : [] },
  };
}

/** A failure of one pod affects no other pod, and failures in one namespace affect no other namespace. */
async function openAll({ service, report, failed, left }: Opening, pods: readonly Pod[]): Promise<void> {
  const rest = await serveInTurns(pods, { clock: service.clock, atOnce: PODS_AT_ONCE, namespaceOf }, async (pod) => {
    try {
      if (await open(service, pod)) report.opened++;
      failed.delete(uidOf(pod));
      return true;
    } catch (error) {
      failed.set(uidOf(pod), { pod, error });
      return false;
    }
  });
  left.clear();
  for (const pod of rest) left.set(uidOf(pod), pod);
}

/** Records one sentence that names one of the pods. */
function noteFailures({ service, failed, left }: Opening): void {
  const [first] = failed.values();
  if (!first) return;
  const help = isKubeError(first.error, 403)
    ? "; infra/rbac/optional/container-recreate.yaml grants what is missing"
    : "";
  const count = failed.size + left.size;
  note(
    service,
    `${count} pods such as ${podName(first.pod)} stay unready for want of the condition ${POD_READY_CONDITION}: ${errorMessage(first.error)}${help}`,
  );
}

/** Opens the gate of a pod that waits. False: it is open by now, or the pod is gone. */
async function open(service: Service, pod: Pod, tries = MAX_TRIES): Promise<boolean> {
  try {
    await write(service, pod);
    return true;
  } catch (error) {
    if (isKubeError(error, 404)) return false;
    if (!isKubeError(error, 409) || tries === 1) throw error;
  }
  const seen = await readSame(service, pod);
  return seen !== undefined && isWaiting(seen) && (await open(service, seen, tries - 1));
}

/** Writes only to the unchanged pod, because somebody may hold it unready by now. */
async function write({ cluster, clock }: Service, pod: Pod): Promise<void> {
  const { namespace = "", name = "", uid, resourceVersion } = pod.metadata ?? {};
  const condition = conditionOf(withOpenGate(pod, timestamp(clock)), POD_READY_CONDITION);
  const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
  await cluster.patch<Pod>(PODS, { namespace, name }, { type: "strategic", body }, { subresource: "status" });
}

/** Reads the pod again; undefined: it is gone, or another pod has its name, which the watch reports. */
async function readSame({ cluster }: Service, { metadata }: Pod): Promise<Pod | undefined> {
  const { namespace = "", name = "", uid } = metadata ?? {};
  const pod = await ifThere(cluster.get<Pod>(PODS, { namespace, name }));
  return pod?.metadata?.uid === uid ? pod : undefined;
}

function planned(pod: Pod): string {
  return `give pod ${podName(pod)} the condition ${POD_READY_CONDITION}`;
}
