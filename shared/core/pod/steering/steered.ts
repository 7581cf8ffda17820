/**
 * Decides which part of a SidecarSet's metadata passes go by. They are given nothing else, and all of it is compared when
 * they ask whether it is still the same: what is not named here steers nothing, so nothing can steer and be overlooked.
 */
import { hash } from "node:crypto";
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { ANNOTATIONS } from "./annotations.ts";

const STEERING = Object.keys(ANNOTATIONS);
/** Those that the status says are obeyed, in the order of the digests that ledgers hold. */
const OBSERVED = Object.entries(ANNOTATIONS)
  .filter(([, { isObserved }]) => isObserved)
  .map(([name, row]) => ({ name, place: "sortedAs" in row ? (row.sortedAs ?? name) : name }))
  .toSorted((a, b) => (a.place < b.place ? -1 : 1))
  .map(({ name }) => name);
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
    annotations: pick(annotations ?? {}, STEERING),
    labels: pick(labels ?? {}, LABELS),
  };
}

/** In the order of `keys`. */
function pick(from: object, keys: readonly string[]): Readonly<Record<string, unknown>> {
  const all = from as Readonly<Record<string, unknown>>;
  return Object.fromEntries(keys.filter((key) => all[key] !== undefined).map((key) => [key, all[key]]));
}
