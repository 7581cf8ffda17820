/** Tells which SidecarSets a pod gets with values in place: its annotations have room for a limited number. */
import { HASH_WITHOUT_IMAGE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { type Texts, textLength, valuesInPlace, valuesLength, withValuesInPlace } from "../pod/values-in-place.ts";
import { sidecarSetHashWithoutImage } from "../sidecarset/hash/sidecarset-hash.ts";

/** Limit of annotations in bytes, of 256 KiB; later records of passes need the rest. */
const MOST_ANNOTATION_BYTES = 224 * 1024;

/**
 * The SidecarSets as they are injected into a pod with these annotations. Values that have no room there stay literals,
 * under the hash that pods from before the opt-in have: changes do not reach them in place.
 */
export function withValuesThatFit(sidecarSets: readonly SidecarSet[], annotations: Texts): readonly SidecarSet[] {
  let left = MOST_ANNOTATION_BYTES - textLength(annotations);
  return sidecarSets.map((sidecarSet) => {
    const values = valuesInPlace(sidecarSet);
    if (values === undefined) return sidecarSet;
    if (valuesLength(values) > left) return withLiterals(sidecarSet);
    left -= valuesLength(values);
    return withValuesInPlace(sidecarSet);
  });
}

function withLiterals({ metadata, ...rest }: SidecarSet): SidecarSet {
  const withoutImage = { [HASH_WITHOUT_IMAGE_ANNOTATION]: sidecarSetHashWithoutImage(rest.spec) };
  return { ...rest, metadata: { ...metadata, annotations: { ...metadata?.annotations, ...withoutImage } } };
}
