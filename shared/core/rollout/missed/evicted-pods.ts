/** Decides how many pods are on their way out because they missed their sidecars: a rollout counts nobody without them otherwise. */
import type { Pod } from "../../../api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf, type Sequence } from "../../../go/sequence.ts";
import { isInjected } from "../../pod/is-matched.ts";

/** `now` in RFC 3339. 0 where nobody asks for evictions. */
export function countEvicted(
  { metadata }: SidecarSet,
  selected: Sequence<Pod>,
  { reserved, now }: { readonly reserved: ReadonlySet<string>; readonly now: string },
): number {
  if (metadata?.annotations?.[EVICT_MISSED_ANNOTATION] !== "true") return 0;
  // A deletionTimestamp says when the pod should be gone: one that hangs holds no rollout up for good.
  const isGoing = (pod: Pod) => (pod.metadata?.deletionTimestamp ?? "") > now;
  return countOf(
    selected,
    (pod) => !isInjected(pod, metadata?.name ?? "") && (isGoing(pod) || reserved.has(pod.metadata?.uid ?? "")),
  );
}
