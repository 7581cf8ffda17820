/** The pods that should have got a SidecarSet's containers at their creation, but did not. */
import type { Pod } from "../../../api/kubernetes.ts";
import { IGNORE_MISSED_ANNOTATION, MIRROR_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { type Sequence, where } from "../../../go/sequence.ts";
import { declinesSidecars, isActive, isInjected, podName } from "../../pod/is-matched.ts";

export interface MissedScope {
  /** namespaces whose pods no webhook is asked about */
  readonly exemptNamespaces: ReadonlySet<string>;
  /** SidecarSets that take this one's place in pods that both match */
  readonly canaries: readonly string[];
}

/**
 * The selected pods that may have missed the SidecarSet, in any namespace. `since`, RFC3339: start of the selection. A
 * pod created in that very second is left out, because the order is unknown.
 */
export function mayHaveMissed(pods: Sequence<Pod>, sidecarSet: SidecarSet, since: string): readonly Pod[] {
  if (sidecarSet.spec.injectionStrategy?.paused) return [];
  const name = sidecarSet.metadata?.name ?? "";
  const isLater = ({ metadata }: Pod) => (metadata?.creationTimestamp ?? "") > since;
  return where(pods, (pod) => isLater(pod) && !isInjected(pod, name) && isActive(pod) && !isLetBe(pod));
}

/** The pods that missed the injection, sorted by namespace and name. */
export function missedPods(candidates: readonly Pod[], { exemptNamespaces, canaries }: MissedScope): readonly Pod[] {
  return candidates
    .filter(({ metadata }) => !exemptNamespaces.has(metadata?.namespace ?? ""))
    .filter((pod) => !canaries.some((canary) => isInjected(pod, canary)))
    .sort((a, b) => compareUtf8(podName(a), podName(b)));
}

/** True when the pod's author declined sidecars, or a node runs the pod whatever the API server stores. */
function isLetBe(pod: Pod): boolean {
  const { [IGNORE_MISSED_ANNOTATION]: ignored, [MIRROR_ANNOTATION]: mirror } = pod.metadata?.annotations ?? {};
  return ignored === "true" || mirror !== undefined || declinesSidecars(pod);
}
