/**
 * The pods that a SidecarSet, in one of its generations, may have evicted. The rules are written again here, apart from
 * the core.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION, INJECT_KEY } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { hasLabels } from "./label-match.ts";
import { isFinished, isInjected } from "./objects.ts";
import { comesBack, isAskedFor, isRestartingMissed, replacementProblem } from "./replacements.ts";

/** A PodDisruptionBudget keeps it for good. */
export const isGuarded = ({ metadata }: Pod) => metadata?.name?.startsWith("guarded-") === true;

/** True if the SidecarSet selects the pod, injected or not. */
export function isMeant({ spec }: SidecarSet, pod: Pod): boolean {
  return !isFinished(pod) && hasLabels(pod.metadata?.labels, spec.selector ?? {});
}

/** A sentence when it may not. */
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

/** True for a pod that nobody recreates, or that its author wants without sidecars. */
function isLetBe({ metadata }: Pod): boolean {
  const isOwned = metadata?.ownerReferences?.some(({ controller }) => controller === true) === true;
  return !isOwned || metadata?.annotations?.[INJECT_KEY] === "false";
}

/** Made later than `sinceMs`, without sidecars that it should have and gets by a restart, where it is of a workload. */
export function isMissedByRestarts(sidecarSet: SidecarSet, pod: Pod, sinceMs: number): boolean {
  const { creationTimestamp, deletionTimestamp } = pod.metadata ?? {};
  const isBare = isMeant(sidecarSet, pod) && !isInjected(pod, sidecarSet.metadata?.name ?? "");
  const isLate = deletionTimestamp === undefined && Date.parse(creationTimestamp ?? "") > sinceMs;
  return isRestartingMissed(sidecarSet) && isBare && isLate && pod.metadata?.annotations?.[INJECT_KEY] !== "false";
}

/** The pods that should have been evicted, once nothing moves any more. */
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
