/** Finds whether a SidecarSet replaces pods that it cannot update in place, and which pods. */
import type { OwnerReference, Pod } from "../../api/kubernetes.ts";
import { MIRROR_ANNOTATION, REPLACE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { steeringOf } from "./steering/steering.ts";
import { restartedWorkloadOf } from "./workload.ts";

/** Controllers that create a new pod for a deleted one, by API group. */
const RECREATING: Readonly<Record<string, readonly string[]>> = {
  apps: ["ReplicaSet", "StatefulSet", "DaemonSet"],
  "apps.kruise.io": ["CloneSet", "StatefulSet", "DaemonSet"],
};

/** True if pods that cannot be updated in place are evicted, so that their controllers create others. */
export function replacesNotUpgradable(sidecarSet: SidecarSet): boolean {
  return steeringOf(sidecarSet).replace.words.has("NotUpgradable");
}

/** True if pods that missed their sidecars are evicted. An annotation can ask for these pods alone. */
export function evictsMissed(sidecarSet: SidecarSet): boolean {
  const { evictsMissed: isAsked, replace } = steeringOf(sidecarSet);
  return isAsked || (replace.words.has("Missed") && replace.restarts === 0);
}

/** True if the workloads of pods that missed their sidecars are restarted, and no such pod is evicted. */
export function restartsMissed(sidecarSet: SidecarSet): boolean {
  const { evictsMissed: isAsked, replace } = steeringOf(sidecarSet);
  return replace.words.has("Missed") && replace.restarts > 0 && !isAsked;
}

/** The number of workloads that are restarted at once, instead of evictions; 0: none. */
export function restartsAtOnce(sidecarSet: SidecarSet): number {
  return steeringOf(sidecarSet).replace.restarts;
}

/** True if a pod that missed its sidecars may be evicted. The annotation for such pods alone accepts any controller. */
export function mayEvictMissed(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (steeringOf(sidecarSet).evictsMissed) return controllerOf(pod) !== undefined;
  return whyNotRecreated(pod, sidecarSet) === undefined;
}

/** API servers accept any text as an owner's uid; a ledger needs one without spaces. */
const UID = /^[^\s]{1,128}$/;

/** The pod's controller; undefined: it has none, or its author invented one. */
export function controllerOf({ metadata }: Pod): OwnerReference | undefined {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return owner !== undefined && UID.test(owner.uid ?? "") ? owner : undefined;
}

/** The key of a pod's controller; "" without one. A pod may name any uid, but its owner is in its own namespace. */
export function controllerKey(pod: Pod): string {
  const owner = controllerOf(pod);
  return owner === undefined ? "" : ownerKey(pod.metadata?.namespace, owner.uid);
}

export function ownerKey(namespace: string | undefined, uid: string): string {
  return `${namespace ?? ""}/${uid}`;
}

/** The key for all owners of a namespace. No owner has an empty uid. */
export function anyOwnerKey(namespace: string | undefined): string {
  return ownerKey(namespace, "");
}

/** True if the owner is in `kept`, which holds keys of owners and of namespaces. */
export function isOwnerKept(kept: ReadonlySet<string> | undefined, namespace: string | undefined, uid: string) {
  return kept?.has(ownerKey(namespace, uid)) === true || kept?.has(anyOwnerKey(namespace)) === true;
}

/** The reason why no new pod would replace this one; undefined: its controller creates one. */
export function whyNotRecreated(pod: Pod, sidecarSet: SidecarSet): string | undefined {
  const owner = controllerOf(pod);
  if (pod.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined) return "it is the mirror of a static pod";
  if (owner === undefined) return "it has no controller that would recreate it";
  if (restartsAtOnce(sidecarSet) > 0)
    return restartedWorkloadOf(pod) ? undefined : `no restart is known of a ${owner.kind} like ${owner.name}`;
  const [group = ""] = owner.apiVersion.split("/");
  if (RECREATING[group]?.includes(owner.kind)) return undefined;
  if (group !== "batch" || owner.kind !== "Job") return `a ${owner.kind} may not recreate it`;
  return steeringOf(sidecarSet).replace.words.has("Jobs")
    ? undefined
    : `it is of a Job: name Jobs in the annotation ${REPLACE_ANNOTATION} too if its work may begin again`;
}
