/** anyOf, oneOf and not of a structural schema. */
import { type FieldError, invalid } from "../kinds/field-error.ts";
import { isObject, type JsonObject, objectsIn } from "../storage/json.ts";

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

export function combinationErrors(
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
