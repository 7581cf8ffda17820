/**
 * Finds the pods that a generation of a SidecarSet may evict. The rules are written here again, independently of the
 * core.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION, INJECT_KEY } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { hasLabels } from "./label-match.ts";
import { isFinished, isInjected } from "./objects.ts";
import { comesBack, isAskedFor, isRestartingMissed, replacementProblem } from "./replacements.ts";

/** True if a PodDisruptionBudget forbids the eviction forever. */
export const isGuarded = ({ metadata }: Pod) => metadata?.name?.startsWith("guarded-") === true;

/** True if the SidecarSet selects the pod, injected or not. */
export function isMeant({ spec }: SidecarSet, pod: Pod): boolean {
  return !isFinished(pod) && hasLabels(pod.metadata?.labels, spec.selector ?? {});
}

/** Returns a sentence if the pod may not be evicted. */
export function evictionProblem(sidecarSet: SidecarSet, pod: Pod): string | undefined {
  if (!isMeant(sidecarSet, pod)) return "is evicted for a SidecarSet that does not select it";
  const has = isInjected(pod, sidecarSet.metadata?.name ?? "");
  if (has) return replacementProblem(sidecarSet, pod);
  const isOfAny = sidecarSet.metadata?.annotations?.[EVICT_MISSED_ANNOTATION] === "true";
  if (!isOfAny && isRestartingMissed(sidecarSet)) return "is evicted, and workloads are to be restarted";
  return missedProblem(sidecarSet, pod);
}

function missedProblem(sidecarSet: SidecarSet, pod: Pod): string | undefined {
  const { metadata, spec } = sidecarSet;
  const isOfAny = metadata?.annotations?.[EVICT_MISSED_ANNOTATION] === "true";
  if (!isOfAny && !isAskedFor(sidecarSet, "Missed")) return "is evicted, and nobody asked for that";
  if (spec.updateStrategy?.paused) return "is evicted although the SidecarSet is paused";
  if ((pod.metadata?.creationTimestamp ?? "") <= (metadata?.creationTimestamp ?? ""))
    return "is evicted, and was there before the SidecarSet";
  return isLetBe(pod) || !(isOfAny || comesBack(pod, sidecarSet))
    ? "is evicted, and would not come back, or is not to be injected"
    : undefined;
}

/** True for a pod that nothing recreates, or whose author wants no sidecars. */
function isLetBe({ metadata }: Pod): boolean {
  const isOwned = metadata?.ownerReferences?.some(({ controller }) => controller === true) === true;
  return !isOwned || metadata?.annotations?.[INJECT_KEY] === "false";
}

/** True for a workload's pod that was created after `sinceMs` without its sidecars, and gets them by a restart. */
export function isMissedByRestarts(sidecarSet: SidecarSet, pod: Pod, sinceMs: number): boolean {
  const { creationTimestamp, deletionTimestamp } = pod.metadata ?? {};
  const isBare = isMeant(sidecarSet, pod) && !isInjected(pod, sidecarSet.metadata?.name ?? "");
  const isLate = deletionTimestamp === undefined && Date.parse(creationTimestamp ?? "") > sinceMs;
  return isRestartingMissed(sidecarSet) && isBare && isLate && pod.metadata?.annotations?.[INJECT_KEY] !== "false";
}

/** Returns the pods that should have been evicted, once the world has settled. */
export function leftBehind(sidecarSet: SidecarSet, pods: readonly Pod[]): readonly Pod[] {
  const since = sidecarSet.status?.selection?.since ?? "";
  return pods.filter(
    (pod) =>
      !isInjected(pod, sidecarSet.metadata?.name ?? "") &&
      evictionProblem(sidecarSet, pod) === undefined &&
      (pod.metadata?.creationTimestamp ?? "") > since &&
      !isGuarded(pod),
  );
}
