/** The library: the hashes of a SidecarSet, by which pods are known to be up to date. Objects in, values out, no I/O. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../shared/api/names.ts";
import { within } from "./arguments.ts";
import { storedSidecarSet } from "./pass-input.ts";

export interface Hashes {
  /** value of the annotation kruise.io/sidecarset-hash */
  readonly hash: string;
  /** value of kruise.io/sidecarset-hash-without-image, which is equal for two SidecarSets that differ in images only */
  readonly hashWithoutImage: string;
}

/**
 * The hashes that the webhook would write, with or without defaults in the SidecarSet.
 * @param sidecarSet in v1beta1 or v1alpha1, as in a manifest
 * @throws TypeError in one sentence, if it is no SidecarSet
 */
export function hash(sidecarSet: KubernetesObject): Hashes {
  const annotations = within("hash", "sidecarSet", () => storedSidecarSet(sidecarSet)).metadata?.annotations ?? {};
  return {
    hash: annotations[HASH_ANNOTATION] ?? "",
    hashWithoutImage: annotations[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "",
  };
}
