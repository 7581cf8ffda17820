/** Decides which pods that missed their sidecars are evicted now, where somebody asks for that, so that they are made anew with them. */
import type { Pod } from "../../api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { countOf, type Sequence } from "../lib/sequence.ts";
import { isRunningAndReady } from "../pod/is-ready.ts";
import { maxUnavailableOf } from "../upgrade/budget.ts";

/** As many pods that are not ready anyway at most, whatever the budget is: they cost none of it. */
const MOST_AT_ONCE = 100;

/**
 * `selected` are all pods that the SidecarSet selects, `missed` those among them. Of the ready ones no more than
 * maxUnavailable leaves room for: every selected pod that is not ready, or is going, takes some of it.
 */
export function planEvictions(
  { metadata, spec }: SidecarSet,
  selected: Sequence<Pod>,
  missed: readonly Pod[],
): readonly Pod[] {
  const isAskedFor = metadata?.annotations?.[EVICT_MISSED_ANNOTATION] === "true";
  if (!isAskedFor || spec.updateStrategy?.paused || spec.injectionStrategy?.paused) return [];
  const isPresent = ({ status }: Pod) => status?.phase !== "Succeeded" && status?.phase !== "Failed";
  const present = countOf(selected, isPresent);
  const unavailable = countOf(selected, (pod) => isPresent(pod) && !isRunningAndReady(pod));
  const room = Math.max(0, maxUnavailableOf(spec.updateStrategy, present) - unavailable);
  const down = missed.filter((pod) => !isRunningAndReady(pod));
  return [...down.slice(0, MOST_AT_ONCE), ...missed.filter(isRunningAndReady).slice(0, room)];
}
