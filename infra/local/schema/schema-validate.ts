/** Structural schemas: errors of a custom resource, in the API server's words. */

import {
  type ApiObject,
  asObject,
  copyOf,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
  setField,
  textsIn,
} from "../storage/json.ts";
import {
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
  typeInvalid,
} from "../storage/status-error.ts";

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function hasType(value: unknown, schema: JsonObject): boolean {
  const actual = typeOf(value);
  if (actual === "null") return schema["nullable"] === true;
  if (schema["x-kubernetes-int-or-string"] === true) return actual === "integer" || actual === "string";
  const wanted = schema["type"];
  return wanted === undefined || wanted === "" || wanted === actual || (wanted === "number" && actual === "integer");
}

function typeError(value: unknown, schema: JsonObject, path: string): FieldError {
  const wanted = schema["x-kubernetes-int-or-string"] === true ? "integer,string" : String(schema["type"] ?? "object");
  return typeInvalid(path, typeOf(value), `${path} in body must be of type ${wanted}: "${typeOf(value)}"`);
}

function fieldErrors(value: JsonObject, schema: JsonObject, path: string): readonly FieldError[] {
  const properties = asObject(schema["properties"]);
  const missing = textsIn(schema["required"])
    .filter((key) => value[key] === undefined)
    .map((key) => required(join(path, key)));
  const inside = Object.entries(value).flatMap(([key, field]) => {
    const known = properties[key] ?? schema["additionalProperties"];
    return isObject(known) && field !== undefined ? schemaErrors(field, known, join(path, key)) : [];
  });
  return [...missing, ...inside];
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function enumErrors(value: unknown, schema: JsonObject, path: string): readonly FieldError[] {
  const allowed = schema["enum"];
  if (!Array.isArray(allowed) || allowed.some((one) => isEqual(one, value))) return [];
  return [notSupported(path, value, allowed)];
}

function insideErrors(value: unknown, schema: JsonObject, path: string): readonly FieldError[] {
  if (Array.isArray(value)) {
    const items = asObject(schema["items"]);
    return value.flatMap((item, index) => schemaErrors(item, items, `${path}[${index}]`));
  }
  return isObject(value) ? fieldErrors(value, schema, path) : [];
}

/** All errors of a value against a schema. */
export function schemaErrors(value: unknown, schema: JsonObject, path: string): readonly FieldError[] {
  if (value === null && schema["nullable"] === true) return [];
  if (!hasType(value, schema)) return [typeError(value, schema, path)];
  const isValid = (other: JsonObject): boolean => schemaErrors(value, other, path).length === 0;
  return [
    ...enumErrors(value, schema, path),
    ...valueErrors(value, schema, path),
    ...insideErrors(value, schema, path),
    ...objectsIn(schema["allOf"]).flatMap((other) => schemaErrors(value, other, path)),
    ...combinationErrors(schema, path, isValid),
  ];
}

// AnyOf, oneOf and not of a structural schema.

function combined(path: string, text: string): FieldError {
  return invalid(path === "" ? "<nil>" : path, "", `"${path}" ${text}`);
}

function someErrors(
  schemas: readonly JsonObject[],
  path: string,
  isValid: (schema: JsonObject) => boolean,
): FieldError[] {
  if (schemas.length === 0 || schemas.some(isValid)) return [];
  return [combined(path, "must validate at least one schema (anyOf)")];
}

function oneErrors(
  schemas: readonly JsonObject[],
  path: string,
  isValid: (schema: JsonObject) => boolean,
): FieldError[] {
  const count = schemas.filter(isValid).length;
  if (schemas.length === 0 || count === 1) return [];
  const found = count === 0 ? "Found none valid" : `Found ${count} valid alternatives`;
  return [combined(path, `must validate one and only one schema (oneOf). ${found}`)];
}

function combinationErrors(
  schema: JsonObject,
  path: string,
  isValid: (schema: JsonObject) => boolean,
): readonly FieldError[] {
  const not = schema["not"];
  const notErrors = isObject(not) && isValid(not) ? [combined(path, "must not validate the schema (not)")] : [];
  return [
    ...someErrors(objectsIn(schema["anyOf"]), path, isValid),
    ...oneErrors(objectsIn(schema["oneOf"]), path, isValid),
    ...notErrors,
  ];
}

/** Bounds of single values in a structural schema: minimum, pattern, lengths, unique lists. */
type Check = (value: unknown, bound: unknown, path: string) => FieldError | undefined;

function when(isWrong: boolean, error: FieldError): FieldError | undefined {
  return isWrong ? error : undefined;
}

const CHECKS: Readonly<Record<string, Check>> = {
  minimum: (value, bound, path) =>
    when(
      Number(value) < Number(bound),
      invalid(path, value, `${path} in body should be greater than or equal to ${bound}`),
    ),
  maximum: (value, bound, path) =>
    when(
      Number(value) > Number(bound),
      invalid(path, value, `${path} in body should be less than or equal to ${bound}`),
    ),
  minLength: (value, bound, path) =>
    when(
      String(value).length < Number(bound),
      invalid(path, value, `${path} in body should be at least ${bound} chars long`),
    ),
  maxLength: (value, bound, path) => when(String(value).length > Number(bound), tooLong(path, Number(bound))),
  pattern: (value, bound, path) =>
    when(
      !new RegExp(String(bound)).test(String(value)),
      invalid(path, value, `${path} in body should match '${bound}'`),
    ),
  minItems: (value, bound, path) =>
    when(
      sizeOf(value) < Number(bound),
      invalid(path, sizeOf(value), `${path} in body should have at least ${bound} items`),
    ),
  maxItems: (value, bound, path) => when(sizeOf(value) > Number(bound), tooMany(path, sizeOf(value), Number(bound))),
};

const APPLIES: Readonly<Record<string, readonly string[]>> = {
  number: ["minimum", "maximum"],
  string: ["minLength", "maxLength", "pattern"],
  object: ["minItems", "maxItems"],
};

function sizeOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

function identity(item: unknown, keys: readonly string[]): unknown {
  if (!isObject(item) || keys.length === 0) return item;
  return Object.fromEntries(keys.flatMap((key) => (item[key] === undefined ? [] : [[key, item[key]]])));
}

function listErrors(value: readonly unknown[], schema: JsonObject, path: string): readonly FieldError[] {
  const type = schema["x-kubernetes-list-type"];
  if (type !== "set" && type !== "map") return [];
  const identities = value.map((item) => identity(item, textsIn(asObject(schema)["x-kubernetes-list-map-keys"])));
  return identities.flatMap((one, index) => {
    const isRepeated = identities.slice(0, index).some((other) => isEqual(other, one));
    return isRepeated ? [duplicate(`${path}[${index}]`, one)] : [];
  });
}

/** Errors of a value that already has the schema's type. */
function valueErrors(value: unknown, schema: JsonObject, path: string): readonly FieldError[] {
  const bounds = (APPLIES[typeof value] ?? []).flatMap((keyword) => {
    const bound = schema[keyword];
    return bound === undefined ? [] : (CHECKS[keyword]?.(value, bound, path) ?? []);
  });
  return Array.isArray(value) ? [...bounds, ...listErrors(value, schema, path)] : bounds;
}

// Structural schemas: the fields of a custom resource that the API server drops.

const OBJECT_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

interface Pruning {
  readonly dropped: string[];
}

function isWhole(schema: JsonObject): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

/** The schema of one field; undefined when the field is dropped. */
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

/** Returns a new object without unknown fields, and their places. apiVersion, kind and metadata of the root stay. */
export function pruned(object: ApiObject, schema: JsonObject): { object: ApiObject; dropped: readonly string[] } {
  const pruning: Pruning = { dropped: [] };
  const kept = pruneFields(object, { ...schema, "x-kubernetes-embedded-resource": true }, "", pruning);
  return { object: { ...kept, metadata: object.metadata }, dropped: pruning.dropped };
}

/** Structural schemas: fills in the API server's defaults, in existing objects. */
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

/** Returns a new value. */
export function withDefaults(value: unknown, schema: JsonObject): unknown {
  if (Array.isArray(value)) return value.map((item) => withDefaults(item, asObject(schema["items"])));
  return isObject(value) ? defaultFields(value, schema) : value;
}
