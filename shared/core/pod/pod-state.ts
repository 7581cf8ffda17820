/** Decides where one pod stands in a rollout: updated or not, consistent or not, ready or not. */

import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { parseUpgradeRecords } from "../hash/pod-records.ts";
import { isConsistent } from "./is-consistent.ts";
import { isReady } from "./is-ready.ts";
import { sidecarContainerNames } from "./sidecar-containers.ts";

/** A matched pod and what was found out about it, once per pass. */
export interface PodState {
  readonly pod: Pod;
  /** carries the SidecarSet's hash */
  readonly isUpdated: boolean;
  /** every sidecar container runs what the pod's spec says */
  readonly isConsistent: boolean;
  readonly isReady: boolean;
}

export function podStateOf(pod: Pod, sidecarSet: SidecarSet): PodState {
  return {
    pod,
    isUpdated: isUpdated(pod, sidecarSet),
    isConsistent: isConsistent(pod, sidecarSet.metadata?.name ?? "", sidecarContainerNames(sidecarSet)),
    isReady: isReady(pod, sidecarSet),
  };
}

function isUpdated(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isSameHash(pod, sidecarSet, HASH_ANNOTATION);
}

/** Nothing but images differs between the SidecarSet and what the pod was injected with. */
export function isUpgradable(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isSameHash(pod, sidecarSet, HASH_WITHOUT_IMAGE_ANNOTATION);
}

function isSameHash(pod: Pod, sidecarSet: SidecarSet, annotation: string): boolean {
  const wanted = sidecarSet.metadata?.annotations?.[annotation] ?? "";
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[annotation]);
  return (records[sidecarSet.metadata?.name ?? ""]?.hash ?? "") === wanted;
}
