/** Decides what the SidecarSets' patchPodMetadata make of a new pod's annotations. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { Refusal } from "../admission/refusal.ts";
import { patchPodMetadata } from "../pod/patch-pod-metadata.ts";

export type Annotations = Readonly<Record<string, string>>;

/** The annotations with every patch applied, SidecarSet by SidecarSet; the same object when nothing changes. */
export function patchPodAnnotations(
  annotations: Annotations,
  sidecarSets: readonly SidecarSet[],
): Annotations | Refusal {
  if (!sidecarSets.some(({ spec }) => spec.patchPodMetadata?.length)) return annotations;
  const patches = sidecarSets.flatMap(({ spec }) => spec.patchPodMetadata ?? []);
  const patched = patchPodMetadata(annotations, patches);
  if (patched.kind === "refused") return new Refusal(patched.message);
  const isChanged = Object.entries(patched.annotations).some(([key, value]) => annotations[key] !== value);
  return isChanged ? patched.annotations : annotations;
}
