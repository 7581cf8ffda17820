/** Tells which SidecarSets a canary replaces in a pod. */
import { BASE_ANNOTATION, CANARY_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";

function baseOf({ metadata }: SidecarSet): string | undefined {
  const { [CANARY_ANNOTATION]: isCanary, [BASE_ANNOTATION]: base } = metadata?.annotations ?? {};
  return isCanary === "true" && base ? base : undefined;
}

/** Removes the bases of the canaries. Compat: two canaries of each other drop both (vector canary-mutual-cycle). */
export function replaceByCanary(sidecarSets: readonly SidecarSet[]): readonly SidecarSet[] {
  if (!sidecarSets.some(baseOf)) return sidecarSets;
  const bases = new Set(sidecarSets.map(baseOf));
  return sidecarSets.filter(({ metadata }) => !bases.has(metadata?.name ?? ""));
}

/** True if the SidecarSet replaces `base` in pods that both match. */
export function isCanaryOf(sidecarSet: SidecarSet, base: SidecarSet): boolean {
  return baseOf(sidecarSet) === (base.metadata?.name ?? "");
}
