/** Bounds of single values in a structural schema: minimum, pattern, lengths, unique lists. */
import { duplicate, type FieldError, invalid, tooLong, tooMany } from "../kinds/field-error.ts";
import { asObject, isEqual, isObject, type JsonObject, textsIn } from "../storage/json.ts";

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

/** `value` already has the schema's type. */
export function valueErrors(value: unknown, schema: JsonObject, path: string): readonly FieldError[] {
  const bounds = (APPLIES[typeof value] ?? []).flatMap((keyword) => {
    const bound = schema[keyword];
    return bound === undefined ? [] : (CHECKS[keyword]?.(value, bound, path) ?? []);
  });
  return Array.isArray(value) ? [...bounds, ...listErrors(value, schema, path)] : bounds;
}
