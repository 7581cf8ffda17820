/** Decides when an object, or one of its fields, was written last, as far as its managed fields tell. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";

interface ManagedField {
  readonly time?: string;
  readonly fieldsV1?: unknown;
}

function managedFields({ metadata }: KubernetesObject): readonly ManagedField[] {
  return (metadata as { readonly managedFields?: readonly ManagedField[] } | undefined)?.managedFields ?? [];
}

/** RFC3339; undefined: nobody recorded it */
export function lastWrite(object: KubernetesObject): string | undefined {
  return newest(managedFields(object));
}

/** When somebody wrote last who has set this field; `path` is such as ["spec", "paused"]. */
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
