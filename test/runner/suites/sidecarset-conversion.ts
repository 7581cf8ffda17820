/** Tests the conversion between the two API versions. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../../shared/api/names.ts";
import { convertSidecarSet } from "../../../shared/core/sidecarset/convert.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly from: "v1alpha1" | "v1beta1";
  readonly object: KubernetesObject;
}

export function sidecarSetConversionSuite(
  { from, object }: Input,
  expected: { readonly object: unknown },
): readonly Difference[] {
  const converted = convertSidecarSet(object, from === "v1alpha1" ? SIDECARSET_V1BETA1 : SIDECARSET_V1ALPHA1);
  return compare(converted, { kind: "Decoded", value: expected.object });
}
