/** Decides whether a pod is ready, in the two senses that a rollout has for it. */
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isHotUpgrade, slotsOf } from "./sidecar-containers.ts";

export function readyCondition(pod: Pod): PodCondition | undefined {
  return pod.status?.conditions?.find(({ type }) => type === "Ready");
}

/** The scheduler could not place the pod, or its scheduling gates keep it from trying. */
export function isUnscheduled({ type, status }: PodCondition): boolean {
  return type === "PodScheduled" && status === "False";
}

export function isPodReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

/** Running, Ready and not being deleted. */
export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && isPodReady(pod) && !pod.metadata?.deletionTimestamp;
}

/** Running and ready, and no hot upgrade is under way: every slot that does not work holds its empty image. */
export function isReady(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isRunningAndReady(pod) && !isHotUpgrading(pod, sidecarSet);
}

/** True while a slot that does not work holds another image than the empty one. */
function isHotUpgrading(pod: Pod, sidecarSet: SidecarSet): boolean {
  return (sidecarSet.spec.containers ?? []).some((sidecar) => {
    if (!isHotUpgrade(sidecar)) return false;
    const emptyImage = sidecar.upgradeStrategy?.hotUpgradeEmptyImage;
    const { other } = slotsOf(pod, sidecar.name);
    const container = pod.spec.containers.find(({ name }) => name === other);
    return container !== undefined && Boolean(emptyImage) && container.image !== emptyImage;
  });
}
