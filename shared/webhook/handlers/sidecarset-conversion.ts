/** Conversion of SidecarSets between their API versions, all of a request or none. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { convertSidecarSet } from "../../core/sidecarset/convert.ts";
import type { ConversionRequest } from "../review/review.ts";

/** @throws Error when one object cannot be converted; it is named */
export function convertSidecarSets({ objects, desiredAPIVersion }: ConversionRequest): readonly KubernetesObject[] {
  return objects.map((object) => {
    const converted = convertSidecarSet(object, desiredAPIVersion);
    if (converted.kind === "Decoded") return converted.value;
    throw new Error(`SidecarSet ${object.metadata?.name ?? "without a name"}: ${converted.message}`);
  });
}
