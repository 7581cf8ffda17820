/** Carries out what was decided on a ContainerRecreateRequest, each write on condition that its object is still the one that was read. */
import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import { RECREATE_ACTIVE_LABEL, UNREADY_ACQUIRED } from "../../api/names.ts";
import type { ServeAction } from "../../core/container-recreate/serve-request.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, CONTAINER_RECREATE_REQUESTS, type PartialObject, PODS } from "../../kube/port.ts";
import { podPatch } from "../rollout/pod-patch.ts";

export interface Subject {
  readonly request: ContainerRecreateRequest;
  readonly pod: Pod | undefined;
}

/** The subject as it is then; undefined when the request is gone or its pod has to be looked at again. Throws KubeError: 409 when something changed meanwhile. */
export async function actOnRequest(
  cluster: Cluster,
  { request, pod }: Subject,
  action: ServeAction,
): Promise<Subject | undefined> {
  const { finalizers = [] } = request.metadata ?? {};
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
      const { uid = "" } = request.metadata ?? {};
      await cluster.delete(CONTAINER_RECREATE_REQUESTS, keyOf(request), { uid });
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
 * Throws a KubeError with 409 when it is not the request any more that was listed. Its pod was read since: a pass that
 * ended it meanwhile has let the pod go, and no other would again. Changes nothing, and needs no right to read.
 */
export async function confirmRequest(cluster: Cluster, request: ContainerRecreateRequest): Promise<void> {
  await patchMeta(cluster, request, {});
}

async function patchRequestStatus(
  cluster: Cluster,
  request: ContainerRecreateRequest,
  status: NonNullable<ContainerRecreateRequest["status"]>,
): Promise<ContainerRecreateRequest> {
  const before = request.status ?? { phase: "" };
  const absent = Object.keys(before).filter((key) => !(key in status));
  const cleared = Object.fromEntries(absent.map((key) => [key, null]));
  const body = { metadata: preconditionOf(request), status: { ...cleared, ...status } };
  return await cluster.patch<ContainerRecreateRequest>(
    CONTAINER_RECREATE_REQUESTS,
    keyOf(request),
    { type: "merge", body },
    { subresource: "status" },
  );
}

/** Images and what the pod remembers of it, in one write. False: the pod is not what it was. */
async function patchImages(
  cluster: Cluster,
  pod: Pod,
  { images, annotations }: Extract<ServeAction, { kind: "PatchImages" }>,
): Promise<boolean> {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = pod.metadata ?? {};
  const patch = podPatch({
    kind: "PatchPod",
    purpose: "upgrade",
    pod: { namespace, name, uid, resourceVersion },
    images,
    annotations,
    isFirstAnnotation: pod.metadata?.annotations === undefined,
    usesBudget: false,
  });
  try {
    await cluster.patch<PartialObject>(PODS, { namespace, name }, patch, { answer: "metadata" });
    return true;
  } catch (error) {
    // How a JSON patch whose test fails is answered.
    if (isKubeError(error, 422)) return false;
    throw error;
  }
}

/** Conditions are merged by type; those that stay as they are are not sent. Who else holds the pod unready stands in them too. */
async function patchConditions(cluster: Cluster, pod: Pod, wanted: readonly PodCondition[]): Promise<Pod> {
  const before = pod.status?.conditions ?? [];
  const conditions = wanted.filter((condition) => !before.includes(condition));
  const { namespace = "", name = "", uid, resourceVersion } = pod.metadata ?? {};
  const body = { metadata: { uid, resourceVersion }, status: { conditions } };
  const patch = { type: "strategic", body } as const;
  return await cluster.patch<Pod>(PODS, { namespace, name }, patch, { subresource: "status" });
}

function patchMeta(cluster: Cluster, request: ContainerRecreateRequest, change: object) {
  const body = { metadata: { ...preconditionOf(request), ...change } };
  return cluster.patch<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, keyOf(request), { type: "merge", body });
}

function preconditionOf({ metadata }: ContainerRecreateRequest) {
  return { uid: metadata?.uid, resourceVersion: metadata?.resourceVersion };
}

function keyOf({ metadata }: ContainerRecreateRequest) {
  return { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
}
