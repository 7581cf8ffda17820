/** Whether a SidecarSet, in one of its generations, wants a pod upgraded. Told apart from the core on purpose. */
import type { LabelSelector, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { isInjected, recordsIn } from "./objects.ts";

/** A SidecarSet as it was in one of its generations. */
export interface Spec {
  readonly generation: number;
  readonly sidecarSet: SidecarSet;
}

/** A spec under which a write is allowed. */
export type Grant = Pick<Spec, "sidecarSet">;

/** Those of `specs` under which the pod may be brought to `hash`; a sentence when there is none. */
export function permissionsOf(
  specs: readonly Spec[],
  { hash, pod }: { readonly hash: string; readonly pod: Pod },
): readonly Grant[] | string {
  const named = specs.filter(({ sidecarSet }) => sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] === hash);
  if (named.length === 0) return `brings ${hash}, which no generation that is still allowed has`;
  const grants = named.filter(({ sidecarSet }) => wants(sidecarSet, pod));
  if (grants.length === 0) return `brings ${hash}, which is paused, not to be updated or not for this pod`;
  return grants;
}

/** The pod counts among those of the SidecarSet. */
export function selects({ metadata, spec }: SidecarSet, pod: Pod): boolean {
  return hasLabels(pod, spec.selector) && isInjected(pod, metadata?.name ?? "");
}

export function wants({ metadata, spec }: SidecarSet, pod: Pod): boolean {
  const strategy = spec.updateStrategy ?? {};
  if (strategy.paused || strategy.type === "NotUpdate") return false;
  const shape = metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
  const records = recordsIn(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "{}");
  const isSelected = hasLabels(pod, spec.selector) && (!strategy.selector || hasLabels(pod, strategy.selector));
  return isSelected && records[metadata?.name ?? ""]?.hash === shape;
}

/** matchLabels is all that users write here. */
function hasLabels({ metadata }: Pod, selector: LabelSelector | undefined): boolean {
  return Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => metadata?.labels?.[key] === value);
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
