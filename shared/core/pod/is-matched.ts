/** Tells whether a selected pod takes part in a rollout. */
import type { Container, Pod } from "../../api/kubernetes.ts";
import { INJECT_KEY, INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { replacesNotUpgradable } from "./replaced.ts";
import { isHotUpgrade, slotNames, workingSlots } from "./sidecar-containers.ts";

/**
 * True for an active pod, injected by this SidecarSet, with all of its containers unless such pods are replaced. Other
 * pods are in no count.
 */
export function isMatched(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (!(isActive(pod) && isInjected(pod, sidecarSet.metadata?.name ?? ""))) return false;
  return hasAllSidecars(pod, sidecarSet) || replacesNotUpgradable(sidecarSet);
}

/** True for a pod that is neither finished nor being deleted. */
export function isActive(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase !== "Succeeded" && phase !== "Failed" && !pod.metadata?.deletionTimestamp;
}

/** Names of the SidecarSets that the pod's annotation lists as injected. */
export function injectedBy({ metadata }: Pod): readonly string[] {
  return (metadata?.annotations?.[INJECTED_LIST_ANNOTATION] ?? "").split(",").filter((name) => name !== "");
}

export function isInjected(pod: Pod, sidecarSetName: string): boolean {
  const list = pod.metadata?.annotations?.[INJECTED_LIST_ANNOTATION] ?? "";
  return list === sidecarSetName || list.split(",").includes(sidecarSetName);
}

/**
 * True if the pod has every container of spec.containers, with both slots and a known working one for a hot upgrade.
 */
export function hasAllSidecars(pod: Pod, sidecarSet: SidecarSet): boolean {
  return (sidecarSet.spec.containers ?? []).every((sidecar) => {
    if (!isHotUpgrade(sidecar)) return hasContainer(pod, sidecar.name);
    const hasBoth = slotNames(sidecar.name).every((slot) => hasContainer(pod, slot));
    return hasBoth && Object.hasOwn(workingSlots(pod), sidecar.name);
  });
}

function hasContainer({ spec }: Pod, wanted: string): boolean {
  const isWanted = ({ name }: Container) => name === wanted;
  return spec.containers.some(isWanted) || (spec.initContainers?.some(isWanted) ?? false);
}

/** True for a pod that lacks containers but counts because it will be replaced: only a new pod gets them. */
export function lacksContainers(pod: Pod, sidecarSet: SidecarSet): boolean {
  return replacesNotUpgradable(sidecarSet) && !hasAllSidecars(pod, sidecarSet);
}

/** The pod's name as people read it. */
export function podName({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

/** True when the pod's label or annotation declines sidecars. */
export function declinesSidecars({ metadata }: Pod): boolean {
  return metadata?.labels?.[INJECT_KEY] === "false" || metadata?.annotations?.[INJECT_KEY] === "false";
}
