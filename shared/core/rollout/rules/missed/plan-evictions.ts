/** Decides which pods that missed their sidecars are evicted now, where somebody asks for that, so that they are recreated with them. */
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

/** As many pods that are not ready anyway at most, whatever the budget is: they cost none of it. */
const MOST_AT_ONCE = 100;

interface Held {
  readonly reserved: ReadonlySet<string>;
  readonly awaited?: number;
  /** that the last decision found; absent: none beside those that the strategy asks for */
  readonly holds?: readonly Hold[];
}

/**
 * `selected` are all pods that the SidecarSet selects, `missed` those among them. Of the ready ones no more than
 * maxUnavailable leaves room for: every selected pod takes some of it that is not ready, drained or going, that does not run what
 * it was upgraded to yet, and that is reserved, so that a write to it may land at any moment. `awaited`: so many that were
 * replaced have no successor yet.
 */
export function planEvictions(
  sidecarSet: SidecarSet,
  selected: Sequence<Pod>,
  missed: readonly Pod[],
  { reserved, awaited = 0, holds = [] }: Held,
): readonly Pod[] {
  const { spec } = sidecarSet;
  const isHeld = [...askedHolds(sidecarSet), ...holds].some((hold) => EFFECTS[hold].stopsEvictions);
  if (!evictsMissed(sidecarSet) || isHeld || spec.injectionStrategy?.paused) return [];
  const isPresent = ({ status }: Pod) => status?.phase !== "Succeeded" && status?.phase !== "Failed";
  const present = countOf(selected, isPresent);
  const isReserved = (pod: Pod) => reserved.has(pod.metadata?.uid ?? "");
  const isDown = (pod: Pod) =>
    isReserved(pod) || !isRunningAndReady(pod) || otherDrains(pod, "").length > 0 || isOnItsWay(pod, sidecarSet);
  const unavailable = awaited + countOf(selected, (pod) => isPresent(pod) && isDown(pod));
  const room = Math.max(0, maxUnavailableOf(spec.updateStrategy, present) - unavailable);
  // Whoever reserved a pod is about to write to it.
  const free = missed.filter((pod) => !isReserved(pod));
  const down = free.filter((pod) => !isRunningAndReady(pod));
  return [...down.slice(0, MOST_AT_ONCE), ...free.filter(isRunningAndReady).slice(0, room)];
}

/** Its kubelet has not begun, or not ended, to run what it was given: that it is ready is no news. */
function isOnItsWay(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (!isInjected(pod, sidecarSet.metadata?.name ?? "")) return false;
  const { isUpdated, isConsistent } = podStateOf(pod, sidecarSet, undefined);
  return isUpdated && !isConsistent;
}
