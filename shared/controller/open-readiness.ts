/** Gives pods the condition that gate KruisePodReadinessGate has them wait for, whatever owns them: nothing else does. */
import type { Pod } from "../api/kubernetes.ts";
import { POD_READY_CONDITION } from "../api/names.ts";
import { conditionOf } from "../core/pod/conditions.ts";
import { podName } from "../core/pod/is-matched.ts";
import { uidOf } from "../core/pod/pod-state.ts";
import { withOpenGate } from "../core/statefulset/pods/pod-phase.ts";
import { ifThere, isKubeError } from "../kube/error.ts";
import { PODS } from "../kube/port.ts";
import { timestamp } from "./loop/clock.ts";
import { openFeed } from "./loop/event-feed.ts";
import { namespaceOf, serveInTurns } from "./loop/fair-turns.ts";
import { messageOf, note } from "./loop/problems.ts";
import { listAll } from "./rollout/observe-pods.ts";
import type { ReadinessReport } from "./rollout/report.ts";
import type { Service } from "./rollout/service.ts";

/** No field says that a pod waits for its gate. */
const UNFINISHED = { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" };
/** Every pod begins like this: a watch of these reports all that are created. */
const NEW = { fieldSelector: "status.phase=Pending" };
const PODS_AT_ONCE = 16;
/** A pod that starts is written to by scheduler and kubelet meanwhile. */
const MAX_TRIES = 5;
const NEWS_MS = 1_000;
/** Once the watch is lost. */
const RELIST_MS = 30_000;

interface Opening {
  readonly service: Service;
  readonly report: ReadinessReport;
  /** by uid: pods whose write failed */
  readonly failed: Map<string, { readonly pod: Pod; readonly error: unknown }>;
  /** by uid: pods that wait for the next round, because too many of their namespace failed or were slow */
  readonly left: Map<string, Pod>;
}

/**
 * One list of all pods, then a watch of new ones until `served` says that the rest of the pass has ended. Trouble stands
 * in the service's problems.
 */
export async function openReadiness(service: Service, served: AbortSignal): Promise<ReadinessReport> {
  const opening: Opening = { service, report: { opened: 0 }, failed: new Map(), left: new Map() };
  try {
    if (service.isDryRun) opening.report.planned = (await listWaiting(service)).items.map(planned);
    else await run(opening, served);
  } catch (error) {
    note(service, `pods are not given the condition ${POD_READY_CONDITION}: ${messageOf(error)}`);
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

/** Until the watch is lost, or the rest of the pass has ended. */
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

/** What the decision and the write need. */
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

/** One sentence names one of the pods. */
function noteFailures({ service, failed, left }: Opening): void {
  const [first] = failed.values();
  if (!first) return;
  const help = isKubeError(first.error, 403)
    ? "; infra/rbac/optional/container-recreate.yaml grants what is missing"
    : "";
  const count = failed.size + left.size;
  note(
    service,
    `${count} pods such as ${podName(first.pod)} stay unready for want of the condition ${POD_READY_CONDITION}: ${messageOf(first.error)}${help}`,
  );
}

/** False: it is open by now, or the pod is gone. `pod` waits. */
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

/** Only to the pod as it was read: somebody may hold it unready by now. */
async function write({ cluster, clock }: Service, pod: Pod): Promise<void> {
  const { namespace = "", name = "", uid, resourceVersion } = pod.metadata ?? {};
  const condition = conditionOf(withOpenGate(pod, timestamp(clock)), POD_READY_CONDITION);
  const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
  await cluster.patch<Pod>(PODS, { namespace, name }, { type: "strategic", body }, { subresource: "status" });
}

/** undefined: it is gone, or another has its name, which the watch reports. */
async function readSame({ cluster }: Service, { metadata }: Pod): Promise<Pod | undefined> {
  const { namespace = "", name = "", uid } = metadata ?? {};
  const pod = await ifThere(cluster.get<Pod>(PODS, { namespace, name }));
  return pod?.metadata?.uid === uid ? pod : undefined;
}

function planned(pod: Pod): string {
  return `give pod ${podName(pod)} the condition ${POD_READY_CONDITION}`;
}
