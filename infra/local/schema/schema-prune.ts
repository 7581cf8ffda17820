/** Structural schemas: which fields of a custom resource the API server drops. */
import { asObject, copyOf, isObject, type JsonObject, setField } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";

const OBJECT_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

interface Pruning {
  readonly dropped: string[];
}

function isWhole(schema: JsonObject): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

/** The schema of one field; undefined when the field is to be dropped. */
function fieldSchema(schema: JsonObject, key: string): JsonObject | undefined {
  const property = asObject(schema["properties"])[key];
  if (property !== undefined) return asObject(property);
  const additional = schema["additionalProperties"];
  if (isObject(additional)) return additional;
  const isKept = additional === true || schema["x-kubernetes-preserve-unknown-fields"] === true;
  return isKept ? { "x-kubernetes-preserve-unknown-fields": true } : undefined;
}

function pruneFields(value: JsonObject, schema: JsonObject, path: string, pruning: Pruning): JsonObject {
  const result: JsonObject = {};
  for (const [key, field] of Object.entries(value)) {
    const place = path === "" ? key : `${path}.${key}`;
    const known = fieldSchema(schema, key);
    if (OBJECT_FIELDS.has(key) && isWhole(schema)) setField(result, key, field);
    else if (known === undefined) pruning.dropped.push(place);
    else setField(result, key, prune(field, known, place, pruning));
  }
  return result;
}

function prune(value: unknown, schema: JsonObject, path: string, pruning: Pruning): unknown {
  if (Array.isArray(value)) {
    const items = schema["items"];
    const isKept = schema["x-kubernetes-preserve-unknown-fields"] === true && items === undefined;
    return isKept ? value : value.map((item, index) => prune(item, asObject(items), `${path}[${index}]`, pruning));
  }
  return isObject(value) ? pruneFields(value, schema, path, pruning) : value;
}

/** Answers a new object without unknown fields, and where they were. apiVersion, kind and metadata of the root stay. */
export function pruned(object: ApiObject, schema: JsonObject): { object: ApiObject; dropped: readonly string[] } {
  const pruning: Pruning = { dropped: [] };
  const kept = pruneFields(object, { ...schema, "x-kubernetes-embedded-resource": true }, "", pruning);
  return { object: { ...kept, metadata: object.metadata }, dropped: pruning.dropped };
}

/** Structural schemas: which defaults the API server fills in, inside objects that are there. */
function defaultFields(value: JsonObject, schema: JsonObject): JsonObject {
  const result: JsonObject = { ...value };
  const properties = asObject(schema["properties"]);
  for (const [key, property] of Object.entries(properties)) {
    const field = asObject(property);
    const fallback = field["default"];
    const isMissing = result[key] === undefined || (result[key] === null && field["nullable"] !== true);
    if (isMissing && fallback !== undefined) result[key] = copyOf(fallback);
  }
  for (const [key, field] of Object.entries(result)) {
    const known = properties[key] ?? schema["additionalProperties"];
    if (isObject(known)) result[key] = withDefaults(field, known);
  }
  return result;
}

/** Answers a new value. */
export function withDefaults(value: unknown, schema: JsonObject): unknown {
  if (Array.isArray(value)) return value.map((item) => withDefaults(item, asObject(schema["items"])));
  return isObject(value) ? defaultFields(value, schema) : value;
}
