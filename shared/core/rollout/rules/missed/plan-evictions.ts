/** Tells which pods without their sidecars are evicted now, on request, so that new ones have sidecars. */
import type { Pod } from "../../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { countOf, type Sequence } from "../../../../go/sequence.ts";
import { isInjected } from "../../../pod/is-matched.ts";
import { isRunningAndReady } from "../../../pod/is-ready.ts";
import { otherDrains } from "../../../pod/pod-records.ts";
import { podStateOf } from "../../../pod/pod-state.ts";
import { evictsMissed } from "../../../pod/replaced.ts";
import { askedHolds, type Hold } from "../../hold.ts";
import { EFFECTS } from "../../hold-effects.ts";
import { maxUnavailableOf } from "../../select/budget.ts";

/** Limit of unready pods evicted at once. They use no budget. */
const MOST_AT_ONCE = 100;

interface Held {
  readonly reserved: ReadonlySet<string>;
  readonly awaited?: number;
  /** holds of the last decision; absent: only holds of the strategy */
  readonly holds?: readonly Hold[];
  /** the present time, RFC3339; absent: drains of any age count */
  readonly now?: string;
}

/**
 * The pods to evict. `selected`: all pods that the SidecarSet selects; `missed`: the ones without sidecars. Ready pods
 * are evicted only within maxUnavailable. A selected pod uses budget while it is unready, drained or going, or has not
 * applied its upgrade. So does a reserved pod, because a write to it may land at any moment. `awaited`: number of
 * replaced pods without a successor yet.
 */
export function planEvictions(
  sidecarSet: SidecarSet,
  selected: Sequence<Pod>,
  missed: readonly Pod[],
  { reserved, awaited = 0, holds = [], now }: Held,
): readonly Pod[] {
  const { spec } = sidecarSet;
  const isHeld = [...askedHolds(sidecarSet), ...holds].some((hold) => EFFECTS[hold].stopsEvictions);
  if (!evictsMissed(sidecarSet) || isHeld || spec.injectionStrategy?.paused) return [];
  const isPresent = ({ status }: Pod) => status?.phase !== "Succeeded" && status?.phase !== "Failed";
  const present = countOf(selected, isPresent);
  const isReserved = (pod: Pod) => reserved.has(pod.metadata?.uid ?? "");
  const isDown = (pod: Pod) =>
    isReserved(pod) || !isRunningAndReady(pod) || otherDrains(pod, "", now).length > 0 || isOnItsWay(pod, sidecarSet);
  const unavailable = awaited + countOf(selected, (pod) => isPresent(pod) && isDown(pod));
  const room = Math.max(0, maxUnavailableOf(spec.updateStrategy, present) - unavailable);
  // The pass that reserved a pod is about to write to it, so it is not evicted.
  const free = missed.filter((pod) => !isReserved(pod));
  const down = free.filter((pod) => !isRunningAndReady(pod));
  return [...down.slice(0, MOST_AT_ONCE), ...free.filter(isRunningAndReady).slice(0, room)];
}

/** True while the kubelet has not finished applying an update, so that Ready is outdated. */
function isOnItsWay(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (!isInjected(pod, sidecarSet.metadata?.name ?? "")) return false;
  const { isUpdated, isConsistent } = podStateOf(pod, sidecarSet, undefined);
  return isUpdated && !isConsistent;
}
