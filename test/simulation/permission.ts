/** Whether a SidecarSet, in one of its generations, wants a pod upgraded. Told apart from the core on purpose. */
import type { LabelSelector, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { SET } from "./objects.ts";

export interface Grant {
  readonly generation: number;
  readonly strategy: UpdateStrategy;
}

/** The generations, from `from` on, under which the pod may be brought to `hash`; a sentence when there is none. */
export function permissionsOf(
  specs: ReadonlyMap<number, SidecarSet>,
  { hash, pod, from }: { readonly hash: string; readonly pod: Pod; readonly from: number },
): readonly Grant[] | string {
  const named = [...specs].filter(
    ([generation, { metadata }]) => generation >= from && metadata?.annotations?.[HASH_ANNOTATION] === hash,
  );
  if (named.length === 0) return `brings ${hash}, which no generation from ${from} on has`;
  const grants = named.filter(([, spec]) => wants(spec, pod));
  if (grants.length === 0) return `brings ${hash}, which is paused, not to be updated or not for this pod`;
  return grants.map(([generation, { spec }]) => ({ generation, strategy: spec.updateStrategy ?? {} }));
}

export function wants({ metadata, spec }: SidecarSet, pod: Pod): boolean {
  const strategy = spec.updateStrategy ?? {};
  if (strategy.paused || strategy.type === "NotUpdate") return false;
  const shape = metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
  const records = JSON.parse(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "{}");
  const isSelected = hasLabels(pod, spec.selector) && (!strategy.selector || hasLabels(pod, strategy.selector));
  return isSelected && records[SET]?.hash === shape;
}

/** matchLabels is all that users write here. */
function hasLabels({ metadata }: Pod, selector: LabelSelector | undefined): boolean {
  return Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => metadata?.labels?.[key] === value);
}

export function budgetOf({ maxUnavailable = 1 }: UpdateStrategy, total: number): number {
  return scaled(maxUnavailable, total);
}

export function partitionNow({ partition = 0 }: UpdateStrategy, total: number): number {
  const kept = scaled(partition, total);
  const isAll = kept >= total && typeof partition === "string" && partition !== "100%";
  return Math.min(total, isAll && total > 1 ? total - 1 : kept);
}

function scaled(value: number | string, total: number): number {
  return typeof value === "number" ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}
