/** Decides the pull policy of a container that names none. */
import { parseImageReference } from "../../../go/image-reference.ts";

/**
 * Always for an image of the tag latest, given or meant (neither tag nor digest); IfNotPresent for every other, and
 * for a text that names no image. Source: OpenKruise's defaults, by the normalised docker reference.
 */
export function defaultImagePullPolicy(image: string): "Always" | "IfNotPresent" {
  const reference = parseImageReference(image);
  if (reference === undefined) return "IfNotPresent";
  const isLatest = reference.tag === "latest" || (reference.tag === undefined && reference.digest === undefined);
  return isLatest ? "Always" : "IfNotPresent";
}
