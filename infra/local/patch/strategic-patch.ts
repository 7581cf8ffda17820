/** Strategic merge patch: lists merge by key, with the $patch, $retainKeys, $setElementOrder and $deleteFromPrimitiveList directives. */
import { asList, asText, isEqual, isObject, type JsonObject, objectsIn, setField, textsIn } from "../storage/json.ts";
import { internalError } from "../storage/status-error.ts";
import { type ListStrategy, listStrategy } from "./strategic-keys.ts";
import { inElementOrder } from "./strategic-order.ts";

const ORDER = "$setElementOrder/";
const DELETE_FROM = "$deleteFromPrimitiveList/";

interface Schema {
  readonly group: string;
  readonly kind: string;
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith("$")));
}

function retain(object: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => keys.includes(key)));
}

function mergeItem(list: unknown[], item: JsonObject, mergeKey: string, schema: Schema): unknown[] {
  if (item[mergeKey] === undefined) {
    throw internalError(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`);
  }
  const index = list.findIndex((other) => isObject(other) && isEqual(other[mergeKey], item[mergeKey]));
  if (item["$patch"] === "delete") return index < 0 ? list : list.toSpliced(index, 1);
  if (index < 0) return [...list, mergeObject({}, item, schema)];
  return list.with(index, mergeObject(list[index], item, schema));
}

function mergeKeyed(current: unknown, patch: readonly unknown[], mergeKey: string, schema: Schema): unknown[] {
  const items = objectsIn(patch);
  if (items.some((item) => item["$patch"] === "replace")) {
    return items.filter((item) => item["$patch"] !== "replace").map((item) => mergeObject({}, item, schema));
  }
  let result = [...asList(current)];
  for (const item of items) result = mergeItem(result, item, mergeKey, schema);
  return inElementOrder(result, items, asList(current), mergeKey);
}

function mergeSet(current: unknown, patch: readonly unknown[]): unknown[] {
  return inElementOrder([...new Set([...asList(current), ...patch])], patch, asList(current), "");
}

function mergeList(current: unknown, patch: readonly unknown[], strategy: ListStrategy, schema: Schema): unknown[] {
  if (strategy === "atomic") return patch.map((item) => (isObject(item) ? mergeObject({}, item, schema) : item));
  return strategy === "set" ? mergeSet(current, patch) : mergeKeyed(current, patch, strategy.mergeKey, schema);
}

function mergeField(result: JsonObject, key: string, value: unknown, schema: Schema): void {
  if (value === null) delete result[key];
  else if (Array.isArray(value)) {
    result[key] = mergeList(result[key], value, listStrategy(schema.group, schema.kind, key), schema);
  } else if (isObject(value) && value["$patch"] === "delete") delete result[key];
  else setField(result, key, isObject(value) ? mergeObject(result[key], value, schema) : value);
}

function applyDirective(result: JsonObject, before: JsonObject, [key, value]: [string, unknown], schema: Schema): void {
  if (key.startsWith(DELETE_FROM)) {
    const field = key.slice(DELETE_FROM.length);
    result[field] = asList(result[field]).filter((item) => !asList(value).includes(item));
  }
  if (key.startsWith(ORDER)) {
    const field = key.slice(ORDER.length);
    const strategy = listStrategy(schema.group, schema.kind, field);
    const mergeKey = typeof strategy === "object" ? strategy.mergeKey : "";
    if (Array.isArray(result[field])) {
      result[field] = inElementOrder(result[field], asList(value), asList(before[field]), mergeKey);
    }
  }
}

function mergeObject(current: unknown, patch: JsonObject, schema: Schema): JsonObject {
  if (patch["$patch"] === "replace") return withoutDirectives(patch);
  if (asText(patch["$patch"]) === "delete") return {};
  const before = isObject(current) ? current : {};
  let result: JsonObject = { ...before };
  for (const [key, value] of Object.entries(withoutDirectives(patch))) mergeField(result, key, value, schema);
  for (const [key, value] of Object.entries(patch)) {
    if (key === "$retainKeys") result = retain(result, textsIn(value));
    else if (key.startsWith("$")) applyDirective(result, before, [key, value], schema);
  }
  return result;
}

/** Answers a new document; `schema` says whose lists these are. */
export function applyStrategicPatch(document: JsonObject, patch: JsonObject, schema: Schema): JsonObject {
  return mergeObject(document, patch, schema);
}
