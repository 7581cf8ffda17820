/** Decides how many pods are on their way out because they missed their sidecars: a rollout counts nobody without them otherwise. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf, type Sequence } from "../../../go/sequence.ts";
import { isInjected } from "../../pod/is-matched.ts";
import { evictsMissed } from "../../pod/replaced.ts";

/** `now` in RFC 3339. 0 where nobody asks for evictions. */
export function countEvicted(
  sidecarSet: SidecarSet,
  selected: Sequence<Pod>,
  { reserved, now }: { readonly reserved: ReadonlySet<string>; readonly now: string },
): number {
  if (!evictsMissed(sidecarSet)) return 0;
  const { name = "" } = sidecarSet.metadata ?? {};
  // A deletionTimestamp says when the pod should be gone: one that hangs holds no rollout up for good.
  const isGoing = (pod: Pod) => (pod.metadata?.deletionTimestamp ?? "") > now;
  return countOf(selected, (pod) => !isInjected(pod, name) && (isGoing(pod) || reserved.has(pod.metadata?.uid ?? "")));
}
