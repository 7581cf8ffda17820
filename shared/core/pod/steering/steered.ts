/**
 * The part of a SidecarSet's metadata that passes obey. Passes receive nothing else and compare all of it for changes,
 * so no field can have an effect and be overlooked.
 */
import { hash } from "node:crypto";
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { ANNOTATIONS } from "./annotations.ts";

const STEERING = Object.keys(ANNOTATIONS);
/** The annotations that the status names as obeyed, in the order of the digests in ledgers. */
const OBSERVED = Object.entries(ANNOTATIONS)
  .filter(([, { isObserved }]) => isObserved)
  .map(([name, row]) => ({ name, place: "sortedAs" in row ? (row.sortedAs ?? name) : name }))
  .toSorted((a, b) => (a.place < b.place ? -1 : 1))
  .map(({ name }) => name);
const LABELS = [CUSTOM_VERSION_LABEL] as const;
/** Fields that identify the object and the generation of its spec. */
const IDENTITY = ["name", "uid", "generation", "creationTimestamp", "deletionTimestamp"] as const;
/** Fields that every write changes, by any author. Only the time of the last write to the spec matters. */
const MOVING = ["resourceVersion", "managedFields"] as const;

declare const STEERED: unique symbol;

/** A SidecarSet whose metadata has only what steers a rollout. */
export type SteeredSidecarSet = SidecarSet & { readonly [STEERED]: true };

export function steered(sidecarSet: SidecarSet): SteeredSidecarSet {
  const { metadata = {}, ...rest } = sidecarSet;
  return { ...rest, metadata: { ...steeringPart(metadata), ...pick(metadata, MOVING) } } as SteeredSidecarSet;
}

/** True if both objects agree in everything that passes obey. A generation identifies a spec. */
export function isSteeredAlike(one: SidecarSet, other: SidecarSet): boolean {
  return JSON.stringify(steeringPart(one.metadata ?? {})) === JSON.stringify(steeringPart(other.metadata ?? {}));
}

/** The annotations that passes obey, as people wrote them. */
export function steeringAnnotations({ metadata }: SidecarSet): Readonly<Record<string, string>> {
  return pick(metadata?.annotations ?? {}, OBSERVED) as Readonly<Record<string, string>>;
}

/** A digest of the annotations that passes obey. */
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

/** The fields named by `keys`, in their order. */
function pick(from: object, keys: readonly string[]): Readonly<Record<string, unknown>> {
  const all = from as Readonly<Record<string, unknown>>;
  return Object.fromEntries(keys.filter((key) => all[key] !== undefined).map((key) => [key, all[key]]));
}
