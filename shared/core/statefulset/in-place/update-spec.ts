/** The changes of an in-place update, and their record in a pod's annotations, as Go's JSON. */

import type { Labels, Pod, ResourceRequirements } from "../../../api/kubernetes.ts";
import {
  IN_PLACE_GRACE_ANNOTATION,
  IN_PLACE_GRACE_OLD_ANNOTATION,
  IN_PLACE_STATE_ANNOTATION,
  IN_PLACE_STATE_OLD_ANNOTATION,
} from "../../../api/names.ts";
import type { ContainerDetails } from "../../../api/pod-parts.ts";
import { isJsonObject, type JsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { jsonProblem } from "../../../go/json/json-problem.ts";
import { isUpdateState } from "../../pod/update-state.ts";

/** Labels and annotations that a container reads into its environment. */
export interface RefMetadata {
  readonly labels?: Labels;
  readonly annotations?: Labels;
}

/** The part of a pod template that a revision records. */
export interface PodTemplate {
  readonly metadata: { readonly labels?: Labels; readonly annotations?: Labels };
  readonly containers: readonly ContainerDetails[];
  readonly initContainers: readonly ContainerDetails[];
}

type ByContainer<T> = Readonly<Record<string, T>>;

/** Members that are such maps. */
const BY_CONTAINER = /^(?:last|next)Container|^container(?:Images|RefMetadata|Resources)$/;

export interface UpdateSpec {
  readonly revision: string;
  readonly containerImages: ByContainer<string>;
  readonly containerRefMetadata: ByContainer<RefMetadata>;
  readonly containerResources: ByContainer<ResourceRequirements>;
  /** text of a merge patch of the pod's metadata; absent when metadata does not change */
  readonly metaDataPatch?: string;
  readonly updateEnvFromMetadata: boolean;
  /** 0: at once */
  readonly graceSeconds: number;
  /** neither images nor environments change, but resources do */
  readonly verticalUpdateOnly: boolean;
}

export interface RanBefore {
  readonly containerID?: string;
  readonly restartCount?: number;
}

export interface InPlaceState {
  readonly revision: string;
  readonly updateTimestamp: string;
  readonly lastContainerStatuses: ByContainer<{ readonly imageID?: string }> | null;
  readonly updateEnvFromMetadata?: boolean;
  readonly updateResources?: boolean;
  readonly updateImages?: boolean;
  readonly nextContainerImages?: ByContainer<string>;
  readonly nextContainerRefMetadata?: ByContainer<RefMetadata>;
  readonly nextContainerResources?: ByContainer<ResourceRequirements>;
  readonly preCheckBeforeNext?: { readonly containersRequiredReady?: readonly string[] };
  /** ours, where no daemon restarts containers for their environment: what ran in them before */
  readonly restartedContainers?: ByContainer<RanBefore>;
  readonly containerBatchesRecord?: readonly { readonly timestamp: string; readonly containers: readonly string[] }[];
}

/** An annotation: absent, JSON of an object, or something else; a text that is no JSON has Go's error. */
export type Remembered<T> =
  | { readonly kind: "absent" }
  | { readonly kind: "present"; readonly value: T }
  | { readonly kind: "malformed"; readonly message: string };

export function readState(pod: Pod): Remembered<InPlaceState> {
  return read(pod, [IN_PLACE_STATE_ANNOTATION, IN_PLACE_STATE_OLD_ANNOTATION], (state) =>
    isUpdateState(state) ? (state as unknown as InPlaceState) : undefined,
  );
}

/** The update that waits for the end of its grace period. */
export function readGrace(pod: Pod): Remembered<UpdateSpec> {
  return read(pod, [IN_PLACE_GRACE_ANNOTATION, IN_PLACE_GRACE_OLD_ANNOTATION], specOf);
}

/** `convert` gives nothing for an object that Go cannot read. */
function read<T>(pod: Pod, keys: readonly string[], convert: (object: JsonObject) => T | undefined): Remembered<T> {
  const annotations = pod.metadata?.annotations ?? {};
  const key = keys.find((candidate) => annotations[candidate] !== undefined);
  if (key === undefined) return { kind: "absent" };
  const stored = jsonOf(annotations[key]);
  // In Go null is an empty struct.
  const object = stored === null ? {} : stored;
  if (!isJsonObject(object)) {
    return {
      kind: "malformed",
      message: jsonProblem(annotations[key] ?? "") ?? `annotation ${key} is not a JSON object`,
    };
  }
  const value = convert(withoutNulls(object));
  return value ? { kind: "present", value } : { kind: "malformed", message: `annotation ${key} cannot be read` };
}

/** Go's reading of null: an absent member, or an empty value for a container. */
function withoutNulls(object: JsonObject): JsonObject {
  const members = Object.entries(object).filter(([, value]) => value !== null);
  return Object.fromEntries(
    members.map(([key, value]) => [key, BY_CONTAINER.test(key) && isJsonObject(value) ? withZeros(key, value) : value]),
  );
}

function withZeros(key: string, map: JsonObject): JsonObject {
  const zero = key.endsWith("Images") ? "" : {};
  return Object.fromEntries(Object.entries(map).map(([container, value]) => [container, value ?? zero]));
}

/** Undefined where the patch of the metadata is no base64. */
function specOf(stored: JsonObject): UpdateSpec | undefined {
  const { metaDataPatch, ...rest } = stored;
  const patch = typeof metaDataPatch === "string" ? fromBase64(metaDataPatch) : undefined;
  if (typeof metaDataPatch === "string" && patch === undefined) return undefined;
  return {
    revision: "",
    containerImages: {},
    containerRefMetadata: {},
    containerResources: {},
    updateEnvFromMetadata: false,
    graceSeconds: 0,
    verticalUpdateOnly: false,
    ...rest,
    ...(patch === undefined ? {} : { metaDataPatch: patch }),
  };
}

/** As Go stores it: bytes in base64, zeros left out. */
export function storedSpec(spec: UpdateSpec): JsonObject {
  const { revision, metaDataPatch, updateEnvFromMetadata, graceSeconds } = spec;
  return {
    ...(revision === "" ? {} : { revision }),
    ...withoutEmpty({
      containerImages: spec.containerImages,
      containerRefMetadata: spec.containerRefMetadata,
      containerResources: spec.containerResources,
    }),
    ...(metaDataPatch === undefined ? {} : { metaDataPatch: toBase64(metaDataPatch) }),
    ...(updateEnvFromMetadata ? { updateEnvFromMetadata } : {}),
    ...(graceSeconds === 0 ? {} : { graceSeconds }),
  };
}

/** Without the members that are empty objects. */
export function withoutEmpty<T extends Readonly<Record<string, object>>>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, map]) => Object.keys(map).length > 0)) as Partial<T>;
}

function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function fromBase64(text: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
