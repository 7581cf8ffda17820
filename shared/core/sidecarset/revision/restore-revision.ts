/** The SidecarSet that a ControllerRevision recorded. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, IN_PLACE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../../go/types/decode-go.ts";
import { SIDECAR_SET_SPEC } from "../../../go/types/sidecarset.ts";
import { withValuesInPlace } from "../../pod/values-in-place.ts";
import { sidecarSetHash, sidecarSetHashWithoutImage } from "../hash/sidecarset-hash.ts";

function recordedSpec({ data, metadata }: ControllerRevision): Decoded<SidecarSetSpec> | DecodeError {
  const spec = typeof data === "object" && data !== null && "spec" in data ? data.spec : undefined;
  const decoded = decodeGo(SIDECAR_SET_SPEC, spec);
  if (decoded.kind === "Decoded") return decoded;
  return { kind: "DecodeError", message: `revision ${metadata?.name ?? ""}: spec: ${decoded.message}` };
}

/**
 * The SidecarSet with the recorded spec, which has neither selectors nor strategies, and the recorded hashes;
 * everything else is current. An error if the revision records something else. Source: OpenKruise sidecarset
 * history_control.go, GetHistorySidecarSet.
 */
export function restoreRevision(
  sidecarSet: SidecarSet,
  revision: ControllerRevision,
): Decoded<SidecarSet> | DecodeError {
  const recorded = recordedSpec(revision);
  if (recorded.kind === "DecodeError") return recorded;
  const spec = recorded.value;
  const hashes = revision.metadata?.annotations ?? {};
  const { name } = revision.metadata ?? {};
  // The hash without images was taken of the form that pods were injected with at that time.
  const { [IN_PLACE_ANNOTATION]: _, ...others } = sidecarSet.metadata?.annotations ?? {};
  const { [IN_PLACE_ANNOTATION]: inPlace } = hashes;
  const kept = { ...others, ...(inPlace === undefined ? {} : { [IN_PLACE_ANNOTATION]: inPlace }) };
  const { spec: injected } = withValuesInPlace({ metadata: { ...sidecarSet.metadata, annotations: kept }, spec });
  const annotations = {
    ...kept,
    [HASH_ANNOTATION]: hashes[HASH_ANNOTATION] || sidecarSetHash(spec),
    [HASH_WITHOUT_IMAGE_ANNOTATION]: hashes[HASH_WITHOUT_IMAGE_ANNOTATION] || sidecarSetHashWithoutImage(injected),
  };
  const value: SidecarSet = {
    ...sidecarSet,
    metadata: { ...sidecarSet.metadata, annotations },
    spec,
    status: { ...sidecarSet.status, ...(name === undefined ? {} : { latestRevision: name }) },
  };
  return { kind: "Decoded", value };
}
