/** The effect of spec.patchPodMetadata on a pod's annotations, patch by patch. */
import type { PatchPodMetadata } from "../../api/sidecarset.ts";
import { mergePatch } from "../../go/json/merge-patch.ts";

type Annotations = Readonly<Record<string, string>>;

type Patched =
  | { readonly kind: "patched"; readonly annotations: Annotations }
  | { readonly kind: "refused"; readonly annotation: string; readonly message: string };

/** All annotations after all patches, applied in order. An unknown policy patches nothing. */
export function patchPodMetadata(annotations: Annotations, patches: readonly PatchPodMetadata[]): Patched {
  const after = new Map(Object.entries(annotations));
  for (const { annotations: wanted = {}, patchPolicy } of patches) {
    for (const [key, value] of Object.entries(wanted)) {
      const patched = patchOne(after.get(key), value, patchPolicy);
      if (patched.kind === "refused") return { ...patched, annotation: key };
      if (patched.text !== undefined) after.set(key, patched.text);
    }
  }
  return { kind: "patched", annotations: Object.fromEntries(after) };
}

type PatchedText =
  /** the new text; undefined: the annotation stays as it is */
  { readonly kind: "text"; readonly text?: string } | { readonly kind: "refused"; readonly message: string };

function patchOne(before: string | undefined, value: string, policy: string | undefined): PatchedText {
  switch (policy || "Retain") {
    case "Retain":
      return before === undefined ? { kind: "text", text: value } : { kind: "text" };
    case "Overwrite":
      return { kind: "text", text: value };
    case "MergePatchJson": {
      if (!before) return { kind: "text", text: value };
      const merged = mergePatch(before, value);
      return merged.kind === "merged" ? { kind: "text", text: merged.text } : merged;
    }
    default:
      return { kind: "text" };
  }
}
