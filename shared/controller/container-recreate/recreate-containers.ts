/** Serves ContainerRecreateRequests: moves each one forward as far as possible, and follows running ones. */
import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
import type { KubernetesObject, ObjectMeta, Pod, PodCondition } from "../../api/kubernetes.ts";
import {
  RECREATE_ACTIVE_LABEL,
  RECREATE_IMAGE_ANNOTATION,
  RECREATE_MAX_UNAVAILABLE_ANNOTATION,
  RECREATE_REQUEST_KIND,
  UNREADY_ACQUIRED,
} from "../../api/names.ts";
import { type ServeAction, serveRequest, statusAction } from "../../core/container-recreate/serve-request.ts";
import { chooseRequests, type Waiting } from "../../core/container-recreate/track-request.ts";
import { isLately } from "../../core/pod/is-ready.ts";
import { inTurns } from "../../go/sequence.ts";
import { ifThere, isKubeError } from "../../kube/error.ts";
import { type Cluster, CONTAINER_RECREATE_REQUESTS, type PartialObject, PODS, storedMeta } from "../../kube/port.ts";
import { errorMessage, note, timestamp } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { newRetries, type Retries, serveInTurns } from "../loop/fair-turns.ts";
import { keepSmall } from "../loop/pages.ts";
import { listAll } from "../rollout/observe-pods.ts";
import { podPatch } from "../rollout/pod-patch.ts";
import type { RecreationReport } from "../rollout/report.ts";
import type { Service } from "../rollout/service.ts";

const REQUESTS_AT_ONCE = 16;
/** Limit of concurrent requests over all batches; the others wait until one ends. */
const MAX_CHOSEN = 200;
/** Limit of finished or waiting requests that are written to in one round. */
const MAX_OTHERS = 200;
const POLL_MS = 1_000;
/** Milliseconds without progress after which the rest waits for a later pass. */
const IDLE_MS = 60_000;
/** Milliseconds reserved for the last writes. */
const RESERVE_MS = 2_000;

const TO_PODS: ReadonlySet<ServeAction["kind"]> = new Set(["PatchImages", "PatchPodConditions"]);

interface Recreating {
  readonly service: Service;
  readonly report: RecreationReport;
  readonly retries: Retries;
  readonly beganAtMs: number;
  /** time of the last progress; absent: no request has moved in this pass */
  movedAtMs?: number;
}

/** Serves the requests; undefined: the cluster has no such kind. Problems go into the service's list. */
export async function recreateContainers(service: Service): Promise<RecreationReport | undefined> {
  const report: RecreationReport = { requests: 0, recreated: 0, completed: 0, waiting: 0 };
  const recreating: Recreating = {
    service,
    report,
    retries: newRetries(service.clock),
    beganAtMs: service.clock.now(),
  };
  try {
    if (service.isDryRun) report.planned = await plan(recreating);
    else await run(recreating);
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    note(service, `ContainerRecreateRequests are not served: ${errorMessage(error)}`);
  }
  return report;
}

async function run(recreating: Recreating): Promise<void> {
  const { clock, limits, isFollowing } = recreating.service;
  for (;;) {
    const isUnderWay = await round(recreating);
    const isIdle = clock.now() - (recreating.movedAtMs ?? recreating.beganAtMs) >= IDLE_MS;
    if (!isFollowing || !isUnderWay || isIdle) return;
    await clock.sleep(POLL_MS, limits.signal);
    if (limits.signal?.aborted || clock.now() >= limits.endsAtMs - RESERVE_MS) return;
  }
}

interface RequestWork {
  readonly request: ContainerRecreateRequest;
  readonly run: () => Promise<void>;
}

/** Runs one round; true if this pass can wait for something. */
async function round(recreating: Recreating): Promise<boolean> {
  const { report, retries, service } = recreating;
  const requests = await listRequests(service);
  const now = timestamp(service.clock);
  report.requests = requests.length;
  const { chosen, waiting } = chooseRequests(requests, now);
  const taken = chosen.slice(0, MAX_CHOSEN);
  report.waiting = waiting.length + chosen.length - taken.length;
  const serve = (request: ContainerRecreateRequest) => ({ request, run: () => serveOne(recreating, request) });
  const over = fairShare(requests.filter((request) => hasCleanup(request, now)).map(serve), retries);
  const told = fairShare(
    waiting.filter(isWaitToTell).map((one) => ({ ...one, run: () => wait(service, one) })),
    retries,
  );
  let isChanged = false;
  const isDone = async (work: RequestWork) => {
    const end = await isolated(recreating, work);
    if (end === "changed") isChanged = true;
    return end === "done";
  };
  const all = [...taken.map(serve).filter(({ request }) => retries.mayTry(request)), ...over, ...told];
  const turns = {
    clock: service.clock,
    atOnce: REQUESTS_AT_ONCE,
    namespaceOf: ({ request }: RequestWork) => storedMeta(request).namespace,
  };
  const left = await serveInTurns(all, turns, isDone);
  // The pass does not wait for an old request that does not move: a later pass looks again.
  const isMoving = recreating.movedAtMs !== undefined && chosen.length > 0;
  const isNew = chosen.some((request) => isLately(storedMeta(request).creationTimestamp, now));
  return isMoving || isNew || left.length > 0 || isChanged || waiting.some(({ isBrief }) => isBrief);
}

/** The work of a round: the first request of each namespace, then the second, up to the limit. */
function fairShare(work: readonly RequestWork[], { mayTry }: Retries): readonly RequestWork[] {
  const due = work.filter(({ request }) => mayTry(request));
  return inTurns(due, ({ request }) => storedMeta(request).namespace).slice(0, MAX_OTHERS);
}

/** A request that has ended, and has something left to write; only one with a finalizer needs its pod read. */
function hasCleanup(request: ContainerRecreateRequest, now: string): boolean {
  return isOver(request) && (isHoldingPod(request) || serveRequest(request, undefined, now).length > 0);
}

function isHoldingPod(request: ContainerRecreateRequest): boolean {
  const { finalizers = [] } = storedMeta(request);
  return finalizers.includes(UNREADY_ACQUIRED);
}

function isWaitToTell(one: Waiting): boolean {
  return waitActions(one).length > 0;
}

function isOver(request: ContainerRecreateRequest): boolean {
  return Boolean(storedMeta(request).deletionTimestamp || request.status?.completionTime);
}

async function listRequests(service: Service): Promise<readonly ContainerRecreateRequest[]> {
  const keep = keepSmall(service, RECREATE_REQUEST_KIND, asRead);
  return (
    await listAll<ContainerRecreateRequest, ContainerRecreateRequest>(
      service.cluster,
      CONTAINER_RECREATE_REQUESTS,
      {},
      keep,
    )
  ).items;
}

/** The annotations that are read. Other annotations may grow later, and the request must still release its pod. */
const ANNOTATIONS = [RECREATE_IMAGE_ANNOTATION, RECREATE_MAX_UNAVAILABLE_ANNOTATION] as const;

function asRead(request: ContainerRecreateRequest): ContainerRecreateRequest {
  const stored: ObjectMeta & { readonly managedFields?: unknown } = storedMeta(request);
  const { managedFields: _, annotations = {}, ...kept } = stored;
  const read = ANNOTATIONS.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]] as const]));
  return { ...request, metadata: { ...kept, annotations: Object.fromEntries(read) } };
}

/** Isolates the requests: a failure of one affects no other. */
async function isolated(
  { service, retries }: Recreating,
  { request, run: work }: RequestWork,
): Promise<"done" | "changed" | "failed"> {
  try {
    await work();
    retries.succeeded(request);
    return "done";
  } catch (error) {
    // The next round looks at objects that changed meanwhile; a webhook may deny each write with 409.
    const isAgain = retries.failed(request);
    if (isKubeError(error, 409) && !isAgain) return "changed";
    if (isKubeError(error, 404)) return "failed";
    const help = isKubeError(error, 403) ? "; infra/rbac/optional/container-recreate.yaml grants what is missing" : "";
    note(service, `${nameOf(request)}: ${errorMessage(error)}${help}`);
    return "failed";
  }
}

function waitActions({ request, why }: Waiting) {
  return statusAction(request, { ...request.status, phase: "Pending", message: why });
}

async function wait({ cluster }: Service, one: Waiting): Promise<void> {
  for (const action of waitActions(one)) await actOnRequest(cluster, { request: one.request, pod: undefined }, action);
}

async function serveOne(recreating: Recreating, request: ContainerRecreateRequest): Promise<void> {
  const { service, report } = recreating;
  const { cluster, clock } = service;
  let subject: Subject = { request, pod: await readPod(cluster, request) };
  const actions = serveRequest(request, subject.pod, timestamp(clock));
  if (!isOver(request) && actions.some(({ kind }) => TO_PODS.has(kind))) await confirmRequest(cluster, request);
  for (const action of actions) {
    const after = await actOnRequest(cluster, subject, action);
    recreating.movedAtMs = clock.now();
    if (!after) return;
    subject = after;
    count(report, action);
  }
}

function count(report: RecreationReport, action: ServeAction): void {
  if (action.kind === "PatchImages") report.recreated += action.images.length;
  if (action.kind === "PatchRequestStatus" && action.status.completionTime) report.completed++;
}

/** Reads the pod. For a finished request it does so only if the request still holds the pod unready. */
async function readPod(cluster: Cluster, request: ContainerRecreateRequest): Promise<Pod | undefined> {
  if (isOver(request) && !isHoldingPod(request)) return undefined;
  return ifThere(cluster.get<Pod>(PODS, { namespace: storedMeta(request).namespace, name: request.spec.podName }));
}

/** Dry run: the current actions, in words. */
async function plan({ service }: Recreating): Promise<readonly string[]> {
  const { cluster, clock } = service;
  const requests = await listRequests(service);
  const { chosen, waiting } = chooseRequests(requests, timestamp(clock));
  const planned = await mapLimited([...requests.filter(isOver), ...chosen], REQUESTS_AT_ONCE, async (request) => {
    const pod = await readPod(cluster, request);
    return serveRequest(request, pod, timestamp(clock)).map((action) => describe(request, action));
  });
  return [...planned.flat(), ...waiting.map(({ request, why }) => `${nameOf(request)} ${why}`)];
}

function describe(request: ContainerRecreateRequest, action: ServeAction): string {
  switch (action.kind) {
    case "PatchImages":
      return `${nameOf(request)}: ${action.images.map(({ container, from, to }) => `${container} ${from} → ${to}`).join(", ")}`;
    case "PatchRequestStatus":
      return `${nameOf(request)}: phase ${action.status.phase}${action.status.message ? `, ${action.status.message}` : ""}`;
    case "PatchPodConditions":
      return `${nameOf(request)}: set the readiness of pod ${request.spec.podName}`;
    default:
      return `${nameOf(request)}: ${action.kind}`;
  }
}

function nameOf(request: ContainerRecreateRequest): string {
  const { namespace, name } = storedMeta(request);
  return `${RECREATE_REQUEST_KIND} ${namespace}/${name}`;
}

/** Runs the actions on a ContainerRecreateRequest. Each write requires that its object is unchanged. */
interface Subject {
  readonly request: ContainerRecreateRequest;
  readonly pod: Pod | undefined;
}

/**
 * The subject afterwards; undefined: the request is gone, or its pod must be read again. Throws KubeError, with 409
 * after a conflict.
 */
export async function actOnRequest(
  cluster: Cluster,
  { request, pod }: Subject,
  action: ServeAction,
): Promise<Subject | undefined> {
  const { finalizers = [] } = storedMeta(request);
  switch (action.kind) {
    case "AddFinalizer":
      return { request: await patchMeta(cluster, request, { finalizers: [...finalizers, UNREADY_ACQUIRED] }), pod };
    case "RemoveFinalizer": {
      const left = finalizers.filter((finalizer) => finalizer !== UNREADY_ACQUIRED);
      return { request: await patchMeta(cluster, request, { finalizers: left }), pod };
    }
    case "Deactivate":
      return { request: await patchMeta(cluster, request, { labels: { [RECREATE_ACTIVE_LABEL]: null } }), pod };
    case "DeleteRequest": {
      const { uid } = storedMeta(request);
      await cluster.delete(CONTAINER_RECREATE_REQUESTS, storedMeta(request), { uid });
      return undefined;
    }
    case "PatchPodConditions":
      return { request, pod: pod && (await patchConditions(cluster, pod, action.conditions)) };
    case "PatchImages":
      return pod && (await patchImages(cluster, pod, action)) ? { request, pod } : undefined;
    case "PatchRequestStatus":
      return { request: await patchRequestStatus(cluster, request, action.status), pod };
    default:
      return action satisfies never;
  }
}

/**
 * Throws a KubeError with 409 if the request has changed since it was listed. Its pod was read later: another pass that
 * ended the request has released the pod, and none would release it again. It changes nothing, and needs no right to
 * read.
 */
async function confirmRequest(cluster: Cluster, request: ContainerRecreateRequest): Promise<void> {
  await patchMeta(cluster, request, {});
}

async function patchRequestStatus(
  cluster: Cluster,
  request: ContainerRecreateRequest,
  status: NonNullable<ContainerRecreateRequest["status"]>,
): Promise<ContainerRecreateRequest> {
  const cleared = Object.fromEntries(Object.keys(request.status ?? {}).map((key) => [key, null]));
  const body = { metadata: preconditionOf(request), status: { ...cleared, ...status } };
  return await cluster.patch<ContainerRecreateRequest>(
    CONTAINER_RECREATE_REQUESTS,
    storedMeta(request),
    { type: "merge", body },
    { subresource: "status" },
  );
}

/** Writes images and their record to the pod in one write. False: the pod has changed. */
async function patchImages(
  cluster: Cluster,
  pod: Pod,
  { images, annotations }: Extract<ServeAction, { kind: "PatchImages" }>,
): Promise<boolean> {
  const key = storedMeta(pod);
  const patch = podPatch({ pod: key, images, annotations, isFirstAnnotation: key.annotations === undefined });
  try {
    await cluster.patch<PartialObject>(PODS, key, patch, { answer: "metadata" });
    return true;
  } catch (error) {
    // The API server answers so if the test of a JSON patch fails.
    if (isKubeError(error, 422)) return false;
    throw error;
  }
}

/**
 * Sends only changed conditions: the API server merges them by type. A condition also names the pod's other holders.
 */
async function patchConditions(cluster: Cluster, pod: Pod, wanted: readonly PodCondition[]): Promise<Pod> {
  const before = pod.status?.conditions ?? [];
  const conditions = wanted.filter((condition) => !before.includes(condition));
  const body = { metadata: preconditionOf(pod), status: { conditions } };
  const patch = { type: "strategic", body } as const;
  return await cluster.patch<Pod>(PODS, storedMeta(pod), patch, { subresource: "status" });
}

function patchMeta(cluster: Cluster, request: ContainerRecreateRequest, change: object) {
  const body = { metadata: { ...preconditionOf(request), ...change } };
  const patch = { type: "merge", body } as const;
  return cluster.patch<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, storedMeta(request), patch);
}

function preconditionOf(object: KubernetesObject) {
  const { uid, resourceVersion } = storedMeta(object);
  return { uid, resourceVersion };
}
