/** The conversion of a SidecarSet between the API versions. */
import type { KubernetesObject, Labels } from "../../api/kubernetes.ts";
import {
  CUSTOM_VERSION_LABEL,
  NAMESPACE_NAME_LABEL,
  SIDECARSET_V1ALPHA1,
  SIDECARSET_V1BETA1,
} from "../../api/names.ts";
import type { SidecarSet, SidecarSetV1alpha1 } from "../../api/sidecarset.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../go/types/decode-go.ts";
import { SIDECAR_SET, SIDECAR_SET_V1ALPHA1 } from "../../go/types/sidecarset.ts";

function withLabels(metadata: KubernetesObject["metadata"], labels: Labels): KubernetesObject["metadata"] {
  const { labels: _labels, ...others } = metadata ?? {};
  return Object.keys(labels).length === 0 ? others : { ...others, labels };
}

/** Compat: a namespace wins over a namespaceSelector (vector sidecarset-conversion, ns-wins-over-selector). */
function toV1beta1(sidecarSet: SidecarSetV1alpha1): SidecarSet {
  const { namespace, ...spec } = sidecarSet.spec;
  const { [CUSTOM_VERSION_LABEL]: customVersion, ...labels } = sidecarSet.metadata?.labels ?? {};
  return {
    ...sidecarSet,
    apiVersion: SIDECARSET_V1BETA1,
    metadata: withLabels(sidecarSet.metadata, labels) ?? {},
    spec: {
      ...spec,
      ...(namespace ? { namespaceSelector: { matchLabels: { [NAMESPACE_NAME_LABEL]: namespace } } } : {}),
      ...(customVersion ? { customVersion } : {}),
    },
  };
}

function toV1alpha1(sidecarSet: SidecarSet): SidecarSetV1alpha1 {
  const { customVersion, ...spec } = sidecarSet.spec;
  const labels = {
    ...sidecarSet.metadata?.labels,
    ...(customVersion ? { [CUSTOM_VERSION_LABEL]: customVersion } : {}),
  };
  return {
    ...sidecarSet,
    apiVersion: SIDECARSET_V1ALPHA1,
    metadata: withLabels(sidecarSet.metadata, labels) ?? {},
    spec,
  };
}

/**
 * The object in the desired version, with the reference's types: unknown fields are gone, defaults are not filled in.
 * An object that already has the version is returned unchanged; any other version is an error. Source: OpenKruise
 * apis/apps/v1alpha1/sidecarset_conversion.go.
 */
export function convertSidecarSet(
  object: KubernetesObject,
  desiredApiVersion: string,
): Decoded<KubernetesObject> | DecodeError {
  const { apiVersion } = object;
  if (apiVersion === desiredApiVersion) return { kind: "Decoded", value: object };
  if (apiVersion === SIDECARSET_V1ALPHA1 && desiredApiVersion === SIDECARSET_V1BETA1) {
    const decoded = decodeGo(SIDECAR_SET_V1ALPHA1, object);
    return decoded.kind === "DecodeError" ? decoded : { kind: "Decoded", value: toV1beta1(decoded.value) };
  }
  if (apiVersion === SIDECARSET_V1BETA1 && desiredApiVersion === SIDECARSET_V1ALPHA1) {
    const decoded = decodeGo(SIDECAR_SET, object);
    return decoded.kind === "DecodeError" ? decoded : { kind: "Decoded", value: toV1alpha1(decoded.value) };
  }
  return { kind: "DecodeError", message: `there is no conversion from ${apiVersion} to ${desiredApiVersion}` };
}
