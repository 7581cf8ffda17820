/** From a request's body to an object: type check, unknown fields, defaults. What Go's decoder does before admission. */
import type { Call } from "./api.ts";
import { isObject, type JsonObject } from "./json.ts";
import { apiVersionOf, type Kind, typed } from "./kind.ts";
import type { ApiObject, Metadata } from "./object.ts";
import { withDefaults } from "./schema-default.ts";
import { pruned } from "./schema-prune.ts";
import { badRequest } from "./status-error.ts";
import { strategyOf } from "./strategy.ts";

/** Go's structs have no null: it decodes as absent. Raw JSON is kept whole. */
function withoutNulls(value: unknown, rawFields: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, rawFields));
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, field] of Object.entries(value)) {
    if (field !== null) result[key] = rawFields.has(key) ? field : withoutNulls(field, rawFields);
  }
  return result;
}

const NOTHING_RAW: ReadonlySet<string> = new Set();
const RAW_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  ControllerRevision: new Set(["data"]),
  CustomResourceDefinition: new Set(["default", "enum", "example"]),
};

function metadataOf(body: JsonObject): Metadata {
  const metadata = body["metadata"] ?? {};
  if (!isObject(metadata)) {
    throw badRequest("json: cannot unmarshal value into Go struct field .metadata of type v1.ObjectMeta");
  }
  return withoutNulls(metadata, NOTHING_RAW) as JsonObject;
}

function checkType(kind: Kind, body: JsonObject): void {
  const version = body["apiVersion"] ?? apiVersionOf(kind);
  const name = body["kind"] ?? kind.kind;
  if (version !== apiVersionOf(kind)) {
    throw badRequest(
      `the API version in the data (${version}) does not match the expected API version (${apiVersionOf(kind)})`,
    );
  }
  if (name !== kind.kind) {
    throw badRequest(
      `${name} in version "${kind.version}" cannot be handled as a ${kind.kind}: converting (v1.${name}) to (core.${kind.kind}): unknown conversion`,
    );
  }
}

function reportUnknown(call: Call, dropped: readonly string[]): void {
  if (dropped.length === 0 || call.fieldValidation === "Ignore") return;
  const texts = dropped.map((path) => `unknown field "${path}"`);
  if (call.fieldValidation === "Warn") call.warnings.push(...texts);
  else {
    const { kind, version } = call.kind;
    throw badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${texts.join(", ")}`,
    );
  }
}

function customObject(call: Call, object: ApiObject, schema: JsonObject): ApiObject {
  const { object: known, dropped } = pruned(object, schema);
  reportUnknown(call, dropped);
  return { ...(withDefaults(known, schema) as JsonObject), metadata: known.metadata };
}

/** Throws 400 when the body is not an object of the call's kind. The answer is ours to change. */
export function decodeObject(call: Call, body: unknown): ApiObject {
  if (!isObject(body)) throw badRequest("couldn't get version/kind; json parse error: the body is not an object");
  const kind = call.kind;
  checkType(kind, body);
  const metadata = metadataOf(body);
  if (kind.custom !== undefined) {
    return typed(kind, customObject(call, { ...structuredClone(body), metadata }, kind.custom.schema));
  }
  const whole = withoutNulls(body, RAW_FIELDS[kind.kind] ?? NOTHING_RAW) as JsonObject;
  const object = structuredClone({ ...whole, metadata });
  strategyOf(kind).default(object);
  return typed(kind, object);
}
