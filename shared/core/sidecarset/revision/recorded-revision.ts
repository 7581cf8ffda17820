/** The ControllerRevision that records a SidecarSet: its content and bytes, its name and labels. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import {
  CUSTOM_VERSION_LABEL,
  REVISION_HASH_LABEL,
  SIDECARSET_KIND,
  SIDECARSET_NAME_LABEL,
  SIDECARSET_V1BETA1,
} from "../../../api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { decodeGo } from "../../../go/types/decode-go.ts";
import { SIDECAR_SET_SPEC } from "../../../go/types/sidecarset.ts";
import { revisionHash } from "../hash/sidecarset-hash.ts";

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

// Name, labels and content of the ControllerRevision that records a SidecarSet.

/** The room in a name before "-" and the hash. */
const MAX_NAME = 223;

export interface RevisionPlace {
  readonly namespace: string;
  /** number in the history, from 1 */
  readonly revision: number;
  /** number in the hashed text; undefined adds no text, but 0 does */
  readonly collisionCount: number | undefined;
}

/** `text` is the revision's data as `revisionText` gives it. */
export function revisionName(sidecarSetName: string, text: string, collisionCount: number | undefined): string {
  return nameWith(sidecarSetName, revisionHash(text, collisionCount));
}

function nameWith(sidecarSetName: string, hash: string): string {
  return `${sidecarSetName.slice(0, MAX_NAME)}-${hash}`;
}

/** A revision that is not stored yet. Source: OpenKruise sidecarset history_control.go, NewRevision. */
export function newRevision(
  sidecarSet: SidecarSet,
  { namespace, revision, collisionCount }: RevisionPlace,
): ControllerRevision {
  const { name = "", uid = "", labels, annotations } = sidecarSet.metadata ?? {};
  const { customVersion } = sidecarSet.spec;
  const data = revisionData(sidecarSet);
  const hash = revisionHash(revisionText(data), collisionCount);
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: nameWith(name, hash),
      namespace,
      labels: {
        ...labels,
        [REVISION_HASH_LABEL]: hash,
        [SIDECARSET_NAME_LABEL]: name,
        ...(customVersion ? { [CUSTOM_VERSION_LABEL]: customVersion } : {}),
      },
      annotations: { ...annotations },
      ownerReferences: [
        {
          apiVersion: SIDECARSET_V1BETA1,
          kind: SIDECARSET_KIND,
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    data,
    revision,
  };
}
