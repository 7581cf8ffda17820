/** The reason why a pod cannot be upgraded now, if there is one. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { isConsistent } from "../../pod/is-consistent.ts";
import { canBeUpdated, type PodState } from "../../pod/pod-state.ts";
import { singleContainerNames } from "../../pod/sidecar-containers.ts";

export type PodClass =
  | "updated"
  /** updateStrategy.selector leaves the pod out; this is not reported even if it could not be upgraded */
  | "notSelected"
  /** more than images differs, or the node cannot change them: only a new pod can get the release */
  | "notUpgradable"
  /** the previous upgrade is still running */
  | "inFlight"
  | "waiting";

/** Finds the pods that are evicted if they cannot be updated in place. */
export interface Replaceable {
  readonly wants: (pod: Pod) => boolean;
  readonly allows: (pod: Pod) => boolean;
}

/** The class of a pod. `replacement`: absent if no pod is replaced. */
export function classify(
  { pod, isUpdated, native, resize }: PodState,
  sidecarSet: SidecarSet,
  replacement?: Replaceable,
): PodClass {
  if (isUpdated) return "updated";
  const selector = sidecarSet.spec.updateStrategy?.selector;
  // A selector with an unknown operator selects no pod.
  if (selector && selectorMatches(selector, pod.metadata?.labels) !== true) return "notSelected";
  if (!canBeUpdated({ pod, native, resize }, sidecarSet)) return replacement?.allows(pod) ? "waiting" : "notUpgradable";
  if (resize?.step === "wait") return "inFlight";
  return hasSettled(pod, sidecarSet) && native?.hasSettled !== false ? "waiting" : "inFlight";
}

/**
 * False while a container of the SidecarSet is ready without matching the spec: the kubelet has not begun to restart
 * it. An unready container may get a newer version at once.
 */
export function hasSettled(pod: Pod, sidecarSet: SidecarSet): boolean {
  const name = sidecarSet.metadata?.name ?? "";
  const sidecars = singleContainerNames(sidecarSet);
  for (const { name: container, ready } of pod.status?.containerStatuses ?? []) {
    const sidecar = ready === true ? sidecars.get(container) : undefined;
    if (sidecar && !isConsistent(pod, name, sidecar)) return false;
  }
  return true;
}
