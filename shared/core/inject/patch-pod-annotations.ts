/** Decides what the SidecarSets' patchPodMetadata make of a pod's annotations. */
import type { PatchPodMetadata, SidecarSet } from "../../api/sidecarset.ts";
import { mergePatch } from "../lib/merge-patch.ts";
import { Refusal } from "../lib/refusal.ts";

export type Annotations = Readonly<Record<string, string>>;

/** The value to set; undefined: leave it. */
type Policy = (existing: string | undefined, patch: string) => string | undefined | Refusal;

function retain(existing: string | undefined, patch: string): string | undefined {
  return existing === undefined ? patch : undefined;
}

function merge(existing: string | undefined, patch: string): string | Refusal {
  if (!existing) return patch;
  const result = mergePatch(existing, patch);
  return result.kind === "merged" ? result.text : new Refusal(result.message);
}

/** Any other policy is ignored. */
const POLICIES: ReadonlyMap<string, Policy> = new Map<string, Policy>([
  ["", retain],
  ["Retain", retain],
  ["Overwrite", (_existing, patch) => patch],
  ["MergePatchJson", merge],
]);

function applyPatch(annotations: Map<string, string>, patch: PatchPodMetadata): Refusal | undefined {
  const policy = POLICIES.get(patch.patchPolicy ?? "");
  if (policy === undefined) return undefined;
  for (const [key, text] of Object.entries(patch.annotations ?? {})) {
    const value = policy(annotations.get(key), text);
    if (value instanceof Refusal) return value;
    if (value !== undefined) annotations.set(key, value);
  }
  return undefined;
}

/** The annotations with every patch applied, SidecarSet by SidecarSet; the same object when nothing changes. */
export function patchPodAnnotations(
  annotations: Annotations,
  sidecarSets: readonly SidecarSet[],
): Annotations | Refusal {
  const patched = new Map(Object.entries(annotations));
  for (const patch of sidecarSets.flatMap(({ spec }) => spec.patchPodMetadata ?? [])) {
    const refusal = applyPatch(patched, patch);
    if (refusal !== undefined) return refusal;
  }
  const isChanged = [...patched].some(([key, value]) => annotations[key] !== value);
  return isChanged ? Object.fromEntries(patched) : annotations;
}
