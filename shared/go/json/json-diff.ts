/** The differences between two JSON values, as RFC 6902 operations without their order. */
import { isJsonObject, type JsonObject } from "./json-object.ts";

export interface JsonChange {
  readonly op: "add" | "remove" | "replace";
  /** member names of the path, not escaped; list indexes as digits */
  readonly path: readonly string[];
  /** the new value; undefined: the member is removed */
  readonly value?: unknown;
}

/** Lists of one length are compared by index; otherwise the surplus is added or removed. */
export function diffJson(before: unknown, after: unknown, path: readonly string[] = []): readonly JsonChange[] {
  if (Array.isArray(before) && Array.isArray(after)) return diffMembers({ ...before }, { ...after }, path);
  if (isJsonObject(before) && isJsonObject(after)) return diffMembers(before, after, path);
  return Object.is(before, after) ? [] : [{ op: "replace", path, value: after }];
}

function diffMembers(before: JsonObject, after: JsonObject, path: readonly string[]): readonly JsonChange[] {
  const kept = Object.entries(after).flatMap(([key, value]): readonly JsonChange[] =>
    Object.hasOwn(before, key)
      ? diffJson(before[key], value, [...path, key])
      : [{ op: "add", path: [...path, key], value }],
  );
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  return [...kept, ...removed.map((key): JsonChange => ({ op: "remove", path: [...path, key] }))];
}
