/** Decides which part of a SidecarSet a ControllerRevision records, and the bytes of it. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { decodeGo } from "../../../go/types/decode-go.ts";
import { SIDECAR_SET_SPEC } from "../../../go/types/sidecarset.ts";

/**
 * The `data` of a revision of the SidecarSet as it is, raw or decoded: what is injected, and nothing of where and how
 * it rolls out. Compat: numbers pass through float64 (vector controllerrevision, big-ints). Throws where the spec
 * does not fit its type, which the API server never stores behind the webhook.
 */
export function revisionData({ spec }: SidecarSet): unknown {
  const known = recordedData.get(spec);
  if (known) return known;
  const data = recordOf(spec);
  recordedData.set(spec, data);
  return data;
}

/** Of specs and data that are the same objects: they never change, and round after round asks for them. */
const recordedData = new WeakMap<SidecarSetSpec, object>();
const texts = new WeakMap<object, string>();

function recordOf(spec: SidecarSetSpec): object {
  const decoded = decodeGo(SIDECAR_SET_SPEC, spec);
  if (decoded.kind === "DecodeError") throw new TypeError(`the spec cannot be recorded: ${decoded.message}`);
  const { containers, imagePullSecrets, initContainers, patchPodMetadata, volumes } = decoded.value;
  const recorded = { $patch: "replace", containers, imagePullSecrets, initContainers, patchPodMetadata, volumes };
  const withNulls = Object.entries(recorded).map(([field, value]) => [field, value ?? null]);
  // In the order of Go's maps: an API server that reads and writes the stored bytes finds them changed otherwise.
  return { spec: JSON.parse(sortedGoJson(Object.fromEntries(withNulls))) };
}

/** Of a merge patch: null takes a field away. */
export type RecordedSpec = { readonly [field in keyof SidecarSetSpec]?: SidecarSetSpec[field] | null };

/** What makes a SidecarSet what it was: the recorded fields, null where there was nothing. */
export function recordedFields({ data }: ControllerRevision): RecordedSpec {
  const { $patch: _, ...spec } = (data as { readonly spec: RecordedSpec & { readonly $patch?: unknown } }).spec;
  return spec;
}

/** The bytes that the reference stores and hashes for this data: two revisions are equal if these are. */
export function revisionText(data: unknown): string {
  if (typeof data !== "object" || data === null) return sortedGoJson(data);
  const known = texts.get(data);
  if (known !== undefined) return known;
  const text = sortedGoJson(data);
  texts.set(data, text);
  return text;
}
