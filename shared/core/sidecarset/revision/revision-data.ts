/** The part of a SidecarSet that a ControllerRevision records, and its bytes. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { decodeGo } from "../../../go/types/decode-go.ts";
import { SIDECAR_SET_SPEC } from "../../../go/types/sidecarset.ts";

/**
 * The `data` of the current SidecarSet's revision, raw or decoded: everything injected, but nothing about where and how
 * it rolls out. Compat: numbers pass through float64 (vector controllerrevision, big-ints). Throws if the spec does not
 * fit its type, which the API server never stores behind the webhook.
 */
export function revisionData({ spec }: SidecarSet): unknown {
  const known = recordedData.get(spec);
  if (known) return known;
  const data = recordOf(spec);
  recordedData.set(spec, data);
  return data;
}

/** Results by spec and data object: the objects never change, and every round needs them again. */
const recordedData = new WeakMap<SidecarSetSpec, object>();
const texts = new WeakMap<object, string>();

function recordOf(spec: SidecarSetSpec): object {
  const decoded = decodeGo(SIDECAR_SET_SPEC, spec);
  if (decoded.kind === "DecodeError") throw new TypeError(`the spec cannot be recorded: ${decoded.message}`);
  const { containers, imagePullSecrets, initContainers, patchPodMetadata, volumes } = decoded.value;
  const recorded = { $patch: "replace", containers, imagePullSecrets, initContainers, patchPodMetadata, volumes };
  const withNulls = Object.entries(recorded).map(([field, value]) => [field, value ?? null]);
  // Uses the order of Go's maps: otherwise an API server that rewrites the bytes would find them changed.
  return { spec: JSON.parse(sortedGoJson(Object.fromEntries(withNulls))) };
}

/** A merge patch: null removes a field. */
export type RecordedSpec = { readonly [field in keyof SidecarSetSpec]?: SidecarSetSpec[field] | null };

/** The recorded fields that restore a SidecarSet, null for absent ones. */
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
