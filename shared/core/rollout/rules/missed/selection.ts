/** Decides since when a SidecarSet selects the pods that it selects now, as far as can be known. */
import { hash } from "node:crypto";
import type { SidecarSet, SidecarSetSpec, SidecarSetStatus } from "../../../../api/sidecarset.ts";

type Selection = NonNullable<SidecarSetStatus["selection"]>;

/**
 * Since it was made, unless it was changed. What a change changed is not recorded anywhere, so the first time that it
 * is looked at counts from its last write, and from then on every other selection counts from when it is first seen.
 * `now` in RFC3339, by a clock that may be slow: what the API server's clock says is later counts then. Never too early,
 * but for pods whose labels were changed.
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

/** Of specs that are the same objects: they never change. */
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

/** By whomever; undefined: it is not recorded. */
export function lastSpecWrite(metadata: SidecarSet["metadata"]): string | undefined {
  const { managedFields } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  const times = managedFields?.flatMap(({ time, subresource, fieldsV1 }) =>
    !subresource && fieldsV1 && "f:spec" in fieldsV1 ? (time ?? []) : [],
  );
  return times?.toSorted().at(-1);
}
