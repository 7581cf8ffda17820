/** Decides whether a pod that the selector found takes part in a rollout at all. */

import type { Pod } from "../../api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isHotUpgrade, slotNames, workingSlots } from "./sidecar-containers.ts";

/** Active, injected by this SidecarSet, and with every one of its containers. Any other pod is in no count. */
export function isMatched(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isActive(pod) && isInjected(pod, sidecarSet.metadata?.name ?? "") && hasAllSidecars(pod, sidecarSet);
}

/** Neither finished nor being deleted. */
export function isActive(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase !== "Succeeded" && phase !== "Failed" && !pod.metadata?.deletionTimestamp;
}

export function isInjected(pod: Pod, sidecarSetName: string): boolean {
  const list = pod.metadata?.annotations?.[INJECTED_LIST_ANNOTATION] ?? "";
  return list === sidecarSetName || list.split(",").includes(sidecarSetName);
}

/** Every entry of spec.containers is in the pod; of a hot-upgrade one both slots, and which of them works is known. */
export function hasAllSidecars(pod: Pod, sidecarSet: SidecarSet): boolean {
  const containers = pod.spec.containers;
  const initContainers = pod.spec.initContainers ?? [];
  const isThere = (wanted: string) =>
    containers.some(({ name }) => name === wanted) || initContainers.some(({ name }) => name === wanted);
  const working = workingSlots(pod);
  return (sidecarSet.spec.containers ?? []).every((sidecar) => {
    if (!isHotUpgrade(sidecar)) return isThere(sidecar.name);
    return slotNames(sidecar.name).every(isThere) && Object.hasOwn(working, sidecar.name);
  });
}
