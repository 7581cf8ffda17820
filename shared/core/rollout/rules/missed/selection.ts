/** The time since which a SidecarSet has selected the same pods, if it is known. */
import { hash } from "node:crypto";
import type { SidecarSet, SidecarSetSpec, SidecarSetStatus } from "../../../../api/sidecarset.ts";

type Selection = NonNullable<SidecarSetStatus["selection"]>;

/**
 * The creation time, unless the spec changed. No record says which field a write changed. So the first selection seen
 * dates from the last write, and every later one from its first observation. `now`: RFC3339, by a clock that may be
 * slow, so a later time of the API server wins. The result is never too early, except for pods whose labels changed.
 */
export function selectionOf({ metadata, spec, status }: SidecarSet, now: string): Selection {
  const digest = digestOf(spec);
  if (status?.selection?.digest === digest) return status.selection;
  const isUnchanged = metadata?.generation === undefined || metadata.generation <= 1;
  const written = isUnchanged ? metadata?.creationTimestamp : lastSpecWrite(metadata);
  if (written && status?.selection === undefined) return { digest, since: written };
  const since = [now, written, metadata?.creationTimestamp].flatMap((time) => time ?? []).reduce(later);
  return { digest, since };
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}

/** Digests by spec object, which never changes. */
const digests = new WeakMap<SidecarSetSpec, string>();

function digestOf(spec: SidecarSetSpec): string {
  const known = digests.get(spec);
  if (known !== undefined) return known;
  const { selector, namespaceSelector, injectionStrategy } = spec;
  const facts = JSON.stringify([selector ?? {}, namespaceSelector ?? null, injectionStrategy?.paused === true]);
  const digest = hash("sha256", facts).slice(0, 16);
  digests.set(spec, digest);
  return digest;
}

interface ManagedFields {
  readonly time?: string;
  readonly subresource?: string;
  readonly fieldsV1?: object;
}

/** The time of the last write to the spec by any author; undefined: it is not recorded. */
export function lastSpecWrite(metadata: SidecarSet["metadata"]): string | undefined {
  const { managedFields } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  const times = managedFields?.flatMap(({ time, subresource, fieldsV1 }) =>
    !subresource && fieldsV1 && "f:spec" in fieldsV1 ? (time ?? []) : [],
  );
  return times?.toSorted().at(-1);
}
