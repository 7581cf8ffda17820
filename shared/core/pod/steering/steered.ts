/**
 * Decides which part of a SidecarSet's metadata passes go by. They are given nothing else, and all of it is compared when
 * they ask whether it is still the same: what is not named here steers nothing, so nothing can steer and be overlooked.
 */
import { hash } from "node:crypto";
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import {
  BASE_ANNOTATION,
  CANARY_ANNOTATION,
  CUSTOM_VERSION_LABEL,
  EVICT_MISSED_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  GATE_ANNOTATION,
  GIVEN_UP_ANNOTATION,
  HALT_ON_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  METRICS_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  REPLACE_ANNOTATION,
  SKIP_WAVES_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  UNDONE_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";

/** Those that people write; they are in no generation, so the status says which ones are obeyed. */
const OBSERVED = [
  CANARY_ANNOTATION,
  EVICT_MISSED_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  GATE_ANNOTATION,
  HALT_ON_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  METRICS_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  REPLACE_ANNOTATION,
  SKIP_WAVES_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  WAVES_ANNOTATION,
] as const;
const ANNOTATIONS = [
  ...OBSERVED,
  BASE_ANNOTATION,
  GIVEN_UP_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  UNDONE_ANNOTATION,
] as const;
const LABELS = [CUSTOM_VERSION_LABEL] as const;
/** Who it is, and which spec. */
const IDENTITY = ["name", "uid", "generation", "creationTimestamp", "deletionTimestamp"] as const;
/** These move with every write, of whomever; of the managed fields it matters when the spec was written last. */
const MOVING = ["resourceVersion", "managedFields"] as const;

declare const STEERED: unique symbol;

/** A SidecarSet without what steers nothing. */
export type SteeredSidecarSet = SidecarSet & { readonly [STEERED]: true };

export function steered(sidecarSet: SidecarSet): SteeredSidecarSet {
  const { metadata = {}, ...rest } = sidecarSet;
  return { ...rest, metadata: { ...steeringPart(metadata), ...pick(metadata, MOVING) } } as SteeredSidecarSet;
}

/** Nothing that passes go by differs, whatever else was written. A spec of one generation is one spec. */
export function isSteeredAlike(one: SidecarSet, other: SidecarSet): boolean {
  return JSON.stringify(steeringPart(one.metadata ?? {})) === JSON.stringify(steeringPart(other.metadata ?? {}));
}

/** What people wrote into annotations that passes go by. */
export function steeringAnnotations({ metadata }: SidecarSet): Readonly<Record<string, string>> {
  return pick(metadata?.annotations ?? {}, OBSERVED) as Readonly<Record<string, string>>;
}

/** A digest of the same. */
export function steeringDigest(sidecarSet: SidecarSet): string {
  return hash("sha256", JSON.stringify(steeringAnnotations(sidecarSet))).slice(0, 16);
}

function steeringPart(metadata: ObjectMeta) {
  const { annotations, labels } = metadata;
  return {
    ...pick(metadata, IDENTITY),
    annotations: pick(annotations ?? {}, ANNOTATIONS),
    labels: pick(labels ?? {}, LABELS),
  };
}

/** In the order of `keys`. */
function pick(from: object, keys: readonly string[]): Readonly<Record<string, unknown>> {
  const all = from as Readonly<Record<string, unknown>>;
  return Object.fromEntries(keys.filter((key) => all[key] !== undefined).map((key) => [key, all[key]]));
}
