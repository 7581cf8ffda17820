/** PATCH: three forms of a change. The write has the same guards as any other write. */
import { decodeObject, goProblem } from "../http/decode.ts";
import type { Api, Call } from "../storage/api.ts";
import {
  type ApiObject,
  asList,
  asText,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
  setField,
  textsIn,
} from "../storage/json.ts";
import {
  badRequest,
  internalError,
  invalid,
  invalidObject,
  unprocessable,
  unsupportedMediaType,
} from "../storage/status-error.ts";
import { changeObject, checkName } from "../storage/update.ts";
import { applyJsonPatch } from "./json-patch.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";

function patched(call: Call, current: ApiObject, mediaType: string, patch: unknown): unknown {
  if (mediaType === JSON_PATCH) return applyJsonPatch(current, patch);
  if (!isObject(patch))
    throw badRequest("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}");
  if (mediaType === MERGE_PATCH) return applyMergePatch(current, patch);
  return applyStrategicPatch(current, patch, { group: call.kind.group, kind: call.kind.kind });
}

/** The API server's 422 for a patch whose result is no object of the kind; it names no kind. */
function unreadable(result: unknown, problem: string): Error {
  const nothing = { group: "", plural: "", kind: "" };
  return invalidObject(nothing, "", [invalid("patch", JSON.stringify(result), problem)]);
}

/** Patches an object. `mediaType`: without parameters. Throws 415 for a type that the kind does not accept. */
export function patchObject(api: Api, call: Call, mediaType: string, patch: unknown): Promise<ApiObject> {
  const accepted =
    call.kind.custom === undefined ? [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH] : [JSON_PATCH, MERGE_PATCH];
  if (!accepted.includes(mediaType)) throw unsupportedMediaType(accepted);
  const transform = (current: ApiObject): ApiObject => {
    const result = patched(call, current, mediaType, patch);
    if (!isObject(result)) throw unprocessable();
    const problem = goProblem(call.kind.kind, result);
    if (problem !== undefined) throw unreadable(result, problem);
    const next = decodeObject(call, result);
    checkName(call, next);
    return next;
  };
  return changeObject(api, call, { verb: "patch", transform });
}

/** Strategic merge patch: lists merge by key, with the $patch, $retainKeys, $setElementOrder and $deleteFromPrimitiveList directives. */
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

/** Returns a new document. `schema`: names the kind of the lists. */
export function applyStrategicPatch(document: JsonObject, patch: JsonObject, schema: Schema): JsonObject {
  return mergeObject(document, patch, schema);
}

/** Merge keys of lists in built-in kinds: the patchMergeKey and patchStrategy tags of k8s.io/api. */

/** Merge keys of lists by their field's name. Names are unambiguous in these kinds, except `ports` of a Service. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: "name",
  initContainers: "name",
  ephemeralContainers: "name",
  volumes: "name",
  imagePullSecrets: "name",
  env: "name",
  ports: "containerPort",
  volumeMounts: "mountPath",
  volumeDevices: "devicePath",
  hostAliases: "ip",
  podIPs: "ip",
  topologySpreadConstraints: "topologyKey",
  schedulingGates: "name",
  resourceClaims: "name",
  conditions: "type",
  addresses: "type",
  ownerReferences: "uid",
  webhooks: "name",
  secrets: "name",
};

/** Lists of plain values that merge as sets. */
const SETS: ReadonlySet<string> = new Set(["finalizers", "podCIDRs"]);

/** A kind of merge: `$retainKeys` keeps only the named keys of an object. */
type ListStrategy = { readonly mergeKey: string } | "set" | "atomic";

/** The way in which a list field of a kind merges. apiextensions has no merging lists outside metadata. */
function listStrategy(group: string, kind: string, field: string): ListStrategy {
  if (SETS.has(field)) return "set";
  if (group === "apiextensions.k8s.io" && field !== "ownerReferences") return "atomic";
  if (kind === "Service" && field === "ports") return { mergeKey: "port" };
  const mergeKey = Object.hasOwn(MERGE_KEYS, field) ? MERGE_KEYS[field] : undefined;
  return mergeKey === undefined ? "atomic" : { mergeKey };
}

// The order of a merged list: first by the patch's $setElementOrder; items of the server alone keep their place.

function identity(item: unknown, mergeKey: string): unknown {
  return isObject(item) ? item[mergeKey] : item;
}

/** `order`: merge keys (as objects) or values; `server`: the list before the patch. */
function inElementOrder(
  merged: readonly unknown[],
  order: readonly unknown[],
  server: readonly unknown[],
  mergeKey: string,
): unknown[] {
  const rank = (list: readonly unknown[], item: unknown): number =>
    list.findIndex((other) => isEqual(identity(other, mergeKey), identity(item, mergeKey)));
  const ordered = merged
    .filter((item) => rank(order, item) >= 0)
    .sort((left, right) => rank(order, left) - rank(order, right));
  const serverOnly = merged.filter((item) => rank(order, item) < 0);
  const result: unknown[] = [];
  for (const item of ordered) {
    const position = rank(server, item);
    while (serverOnly.length > 0 && position >= 0 && rank(server, serverOnly[0]) < position) {
      result.push(serverOnly.shift());
    }
    result.push(item);
  }
  return [...result, ...serverOnly];
}

// RFC 7386: objects merge, null removes, everything else replaces.

/** Returns a new document. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = { ...(isObject(document) ? document : {}) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else setField(result, key, applyMergePatch(result[key], value));
  }
  return result;
}
