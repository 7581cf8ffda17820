/** Structural schemas: which defaults the API server fills in, inside objects that are there. */
import { asObject, copyOf, isObject, type JsonObject } from "../storage/json.ts";

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
