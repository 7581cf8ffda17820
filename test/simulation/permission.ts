/**
 * Judges whether a generation of a SidecarSet wants a pod upgraded. The rules are written here again, independently of
 * the core, on purpose.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { hasLabels } from "./label-match.ts";
import type { IsInNamespace } from "./namespace-witness.ts";
import { isFinished, isInjected } from "./objects.ts";
import { isReshaped, successionProblem } from "./replacements.ts";

/** A SidecarSet in one of its generations, with facts about that generation. */
export interface Spec {
  readonly generation: number;
  readonly sidecarSet: SidecarSet;
  /** the time since which the SidecarSet has had these selectors */
  readonly selectsSinceMs: number;
}

/** The specs under which a write is allowed. */
export type Grant = Pick<Spec, "sidecarSet">;

/** Returns the specs that allow the pod's change to `hash`; a sentence if none does. */
export function permissionsOf(
  specs: readonly Spec[],
  { hash, pod, isIn }: { readonly hash: string; readonly pod: Pod; readonly isIn: IsInNamespace },
): readonly Grant[] | string {
  const named = specs.filter(({ sidecarSet }) => sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] === hash);
  if (named.length === 0) return `brings ${hash}, which no generation that is still allowed has`;
  const grants = named.filter(({ sidecarSet }) => wants(sidecarSet, pod, isIn));
  if (grants.length === 0) return `brings ${hash}, which is paused, not to be updated or not for this pod`;
  return grants;
}

/** True if the SidecarSet counts the pod. */
export function selects(sidecarSet: SidecarSet, pod: Pod, isIn: IsInNamespace): boolean {
  return isMeant(sidecarSet, pod, isIn) && isInjected(pod, sidecarSet.metadata?.name ?? "");
}

function isMeant({ spec }: SidecarSet, pod: Pod, isIn: IsInNamespace): boolean {
  const { selector = {}, namespaceSelector } = spec;
  if (isFinished(pod)) return false;
  return hasLabels(pod.metadata?.labels, selector) && (!namespaceSelector || isIn(pod, namespaceSelector));
}

/** True if the SidecarSet wants to update the pod in place. */
export function wants(sidecarSet: SidecarSet, pod: Pod, isIn: IsInNamespace): boolean {
  return isToFollow(sidecarSet, pod, isIn) && !isReshaped(pod, sidecarSet);
}

/** True if the rollout updates the pod, in place or by a replacement. */
export function reaches(sidecarSet: SidecarSet, pod: Pod, isIn: IsInNamespace): boolean {
  const isReplaced = successionProblem(sidecarSet, pod) === undefined;
  return isToFollow(sidecarSet, pod, isIn) && (isReplaced || !isReshaped(pod, sidecarSet));
}

function isToFollow(sidecarSet: SidecarSet, pod: Pod, isIn: IsInNamespace): boolean {
  const strategy = sidecarSet.spec.updateStrategy ?? {};
  if (strategy.paused || strategy.type === "NotUpdate") return false;
  return isMeant(sidecarSet, pod, isIn) && hasLabels(pod.metadata?.labels, strategy.selector ?? {});
}

export function budgetOf({ spec }: SidecarSet, total: number): number {
  return scaled(spec.updateStrategy?.maxUnavailable ?? 1, total);
}

export function partitionNow({ spec }: SidecarSet, total: number): number {
  const partition = spec.updateStrategy?.partition ?? 0;
  const kept = scaled(partition, total);
  const isAll = kept >= total && typeof partition === "string" && partition !== "100%";
  return Math.min(total, isAll && total > 1 ? total - 1 : kept);
}

function scaled(value: number | string, total: number): number {
  return typeof value === "number" ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}
