/** Decides what a node would make of a pod whose images change: down at first, and back, if it can come back at all. */
import type { Container, ContainerStatus, Pod, PodCondition } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Action } from "../lib/action.ts";
import { isConsistent } from "../pod/is-consistent.ts";
import { isActive } from "../pod/is-matched.ts";
import { sidecarContainerNames } from "../pod/sidecar-containers.ts";

type PodPatch = Extract<Action, { kind: "PatchPod" }>;

/** A container that waits or ended for one of these does not come back by itself: only another image mends it. */
const STUCK: ReadonlySet<string> = new Set([
  "ImagePullBackOff",
  "ErrImagePull",
  "ErrImageNeverPull",
  "InvalidImageName",
  "CrashLoopBackOff",
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
]);

/** The pod right after the patch: its changed containers are being started anew, so it is not ready. */
export function patched(pod: Pod, { images, annotations }: PodPatch): Pod {
  const to = new Map(images.map((image) => [image.container, image.to]));
  const withImage = (container: Container): Container => {
    const image = to.get(container.name);
    return image === undefined ? container : { ...container, image };
  };
  const next: Pod = {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata?.annotations, ...annotations } },
    spec: { ...pod.spec, containers: pod.spec.containers.map(withImage) },
  };
  if (images.length === 0 || !pod.status) return next;
  const statuses = (pod.status.containerStatuses ?? []).map((status) =>
    to.has(status.name) ? stopped(status) : status,
  );
  return withStatuses(next, statuses);
}

/** True for a pod whose node is at work on it, so that it will be `started`: it runs there, and something is not as it should be. */
export function isStarting(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (!pod.spec.nodeName || !isActive(pod)) return false;
  const statuses = pod.status?.containerStatuses ?? [];
  if (statuses.some(isStuck)) return false;
  const isUnready = statuses.some(({ ready }) => ready !== true);
  return isUnready || !isConsistent(pod, sidecarSet.metadata?.name ?? "", sidecarContainerNames(sidecarSet));
}

/** The pod once its containers run what its spec says. */
export function started(pod: Pod, sidecarSet: SidecarSet): Pod {
  const images = new Map(pod.spec.containers.map(({ name, image }) => [name, image]));
  const sidecars = sidecarContainerNames(sidecarSet);
  const statuses = (pod.status?.containerStatuses ?? []).map((status) => {
    const image = images.get(status.name) ?? status.image ?? "";
    const isAsWanted = status.ready === true && (!sidecars.has(status.name) || status.image === image);
    return isAsWanted ? status : running(status, image);
  });
  return withStatuses(pod, statuses);
}

export function isStuck({ ready, state }: ContainerStatus): boolean {
  const reason = state?.waiting?.reason ?? state?.terminated?.reason;
  return ready !== true && reason !== undefined && STUCK.has(reason);
}

export function stopped({ name, image = "", imageID = "", restartCount = 0 }: ContainerStatus): ContainerStatus {
  const state = { waiting: { reason: "ContainerCreating" } };
  return { name, ready: false, image, imageID, restartCount, state };
}

/** Another imageID than before is how a rollout knows that a container runs its new image. */
export function running({ name, imageID, restartCount = 0 }: ContainerStatus, image: string): ContainerStatus {
  const digest = image.includes("@") ? image : `${image}@simulated`;
  const next = `simulated://${digest}`;
  return { name, ready: true, image, imageID: next === imageID ? `${next}+` : next, restartCount: restartCount + 1 };
}

function withStatuses(pod: Pod, containerStatuses: readonly ContainerStatus[]): Pod {
  const isReady = containerStatuses.every(({ ready }) => ready === true);
  const conditions = (pod.status?.conditions ?? []).map((condition) =>
    condition.type === "Ready" ? readyOf(condition, isReady) : condition,
  );
  return { ...pod, status: { ...pod.status, conditions, containerStatuses } };
}

function readyOf(condition: PodCondition, isReady: boolean): PodCondition {
  return { ...condition, status: isReady ? "True" : "False" };
}
