/** Decides which pods should have been given a SidecarSet's containers when they were made, and were not. */
import type { Pod } from "../../../api/kubernetes.ts";
import { IGNORE_MISSED_ANNOTATION, MIRROR_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { type Sequence, where } from "../../../go/sequence.ts";
import { declinesSidecars, isActive, isInjected, podName } from "../../pod/is-matched.ts";

export interface MissedScope {
  /** whose pods no webhook is asked about */
  readonly exemptNamespaces: ReadonlySet<string>;
  /** SidecarSets that take this one's place in pods that both match */
  readonly canaries: readonly string[];
}

/**
 * Of the pods that a SidecarSet selects those that may have missed it, whatever their namespace is. `since`, in RFC3339:
 * when it began to select them. A pod that was made in that very second is not among them: which came first is not known.
 */
export function mayHaveMissed(pods: Sequence<Pod>, sidecarSet: SidecarSet, since: string): readonly Pod[] {
  if (sidecarSet.spec.injectionStrategy?.paused) return [];
  const name = sidecarSet.metadata?.name ?? "";
  const isLater = ({ metadata }: Pod) => (metadata?.creationTimestamp ?? "") > since;
  return where(pods, (pod) => isLater(pod) && !isInjected(pod, name) && isActive(pod) && !isLetBe(pod));
}

/** Those that did, in the order of their namespaces and names. */
export function missedPods(candidates: readonly Pod[], { exemptNamespaces, canaries }: MissedScope): readonly Pod[] {
  return candidates
    .filter(({ metadata }) => !exemptNamespaces.has(metadata?.namespace ?? ""))
    .filter((pod) => !canaries.some((canary) => isInjected(pod, canary)))
    .sort((a, b) => compareUtf8(podName(a), podName(b)));
}

/** Its author said so, whether or not the webhook would have listened, or a node runs it whatever it looks like here. */
function isLetBe(pod: Pod): boolean {
  const { [IGNORE_MISSED_ANNOTATION]: ignored, [MIRROR_ANNOTATION]: mirror } = pod.metadata?.annotations ?? {};
  return ignored === "true" || mirror !== undefined || declinesSidecars(pod);
}
