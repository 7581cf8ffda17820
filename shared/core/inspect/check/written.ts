/** The last write of an object or of one of its fields, as its managed fields say. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";

interface ManagedField {
  readonly time?: string;
  readonly fieldsV1?: unknown;
}

function managedFields({ metadata }: KubernetesObject): readonly ManagedField[] {
  return (metadata as { readonly managedFields?: readonly ManagedField[] } | undefined)?.managedFields ?? [];
}

/** RFC3339; undefined: not recorded */
export function lastWrite(object: KubernetesObject): string | undefined {
  return newest(managedFields(object));
}

/** The last write by an author who has set this field; `path` looks like ["spec", "paused"]. */
export function lastWriteOf(object: KubernetesObject, path: readonly string[]): string | undefined {
  return newest(managedFields(object).filter(({ fieldsV1 }) => hasField(fieldsV1, path)));
}

function hasField(fields: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  return isJsonObject(fields) && hasField(fields[`f:${first}`], rest);
}

/** Timestamps of an API server sort as text. */
function newest(fields: readonly ManagedField[]): string | undefined {
  return fields
    .flatMap(({ time }) => time ?? [])
    .sort()
    .at(-1);
}
