/**
 * Reads an object from a request's body, as Go's decoder does before admission: type check, unknown fields, defaults.
 */
import { apiVersionOf, type Kind, typed } from "../kinds/kind.ts";
import { readQuantity } from "../kinds/quantity.ts";
import { strategyOf } from "../kinds/strategy.ts";
import { pruned, withDefaults } from "../schema/schema-validate.ts";
import type { Call } from "../storage/api.ts";
import {
  type ApiObject,
  asList,
  asObject,
  asText,
  at,
  copyOf,
  isObject,
  type JsonObject,
  type Metadata,
  objectsIn,
  setField,
} from "../storage/json.ts";
import { badRequest } from "../storage/status-error.ts";

interface Reading {
  /** Raw JSON, kept whole. */
  readonly rawFields: ReadonlySet<string>;
  /** True: drops empty lists, as `omitempty` does for all lists but the containers. */
  readonly dropsEmptyLists: boolean;
}

function isDropped(key: string, field: unknown, reading: Reading): boolean {
  if (field === null || field === undefined) return true;
  return reading.dropsEmptyLists && key !== "containers" && Array.isArray(field) && field.length === 0;
}

/** Drops what Go's structs do not keep when they decode and encode, such as null. */
function asStructs(value: unknown, reading: Reading): unknown {
  if (Array.isArray(value)) return value.map((item) => asStructs(item, reading));
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, field] of Object.entries(value)) {
    if (isDropped(key, field, reading)) continue;
    setField(result, key, reading.rawFields.has(key) ? field : asStructs(field, reading));
  }
  return result;
}

const NOTHING_RAW: ReadonlySet<string> = new Set();
const LEAN_GROUPS: ReadonlySet<string> = new Set(["", "apps"]);
const RAW_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  ControllerRevision: new Set(["data"]),
  CustomResourceDefinition: new Set(["default", "enum", "example"]),
};

function metadataOf(body: JsonObject): Metadata {
  const metadata = body["metadata"] ?? {};
  if (!isObject(metadata)) {
    throw badRequest("json: cannot unmarshal value into Go struct field .metadata of type v1.ObjectMeta");
  }
  const typed = asObject(asStructs(metadata, { rawFields: NOTHING_RAW, dropsEmptyLists: true }));
  for (const map of ["labels", "annotations"]) {
    if (isObject(typed[map]) && Object.keys(typed[map]).length === 0) delete typed[map];
  }
  return typed;
}

function checkType(kind: Kind, body: JsonObject): void {
  const version = body["apiVersion"] ?? apiVersionOf(kind);
  const name = body["kind"] ?? kind.kind;
  if (version !== apiVersionOf(kind)) {
    throw badRequest(
      kind.custom === undefined
        ? `${name} in version "${version}" cannot be handled as a ${kind.kind}: no kind "${name}" is registered for version "${version}" in scheme "pkg/runtime/scheme.go:110"`
        : `the API version in the data (${version}) does not match the expected API version (${apiVersionOf(kind)})`,
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

/** Throws 400 when the body is not an object of the call's kind. The caller may change the result. */
export function decodeObject(call: Call, body: unknown): ApiObject {
  if (!isObject(body)) throw badRequest("couldn't get version/kind; json parse error: the body is not an object");
  const kind = call.kind;
  checkType(kind, body);
  const problem = kind.custom === undefined ? goProblem(kind.kind, body) : metadataProblem(body["metadata"]);
  if (problem !== undefined) {
    throw badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${problem}`);
  }
  const metadata = metadataOf(body);
  if (kind.custom !== undefined) {
    return typed(kind, customObject(call, { ...structuredClone(body), metadata }, kind.custom.schema));
  }
  const reading = { rawFields: RAW_FIELDS[kind.kind] ?? NOTHING_RAW, dropsEmptyLists: LEAN_GROUPS.has(kind.group) };
  const object = copyOf({ ...asObject(asStructs(body, reading)), metadata });
  strategyOf(kind).default(object);
  return typed(kind, object);
}

const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

function textMapProblem(value: unknown, place: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value))
    return `json: cannot unmarshal ${typeName(value)} into Go struct field ${place} of type map[string]string`;
  const wrong = Object.values(value).find((item) => typeof item !== "string" && item !== null);
  return wrong === undefined
    ? undefined
    : `json: cannot unmarshal ${typeName(wrong)} into Go struct field ${place} of type string`;
}

function quantityProblem(container: JsonObject): string | undefined {
  const amounts = ["limits", "requests"].flatMap((list) => Object.values(asObject(at(container, "resources", list))));
  return amounts.some((amount) => readQuantity(amount) === undefined) ? QUANTITY : undefined;
}

function containersProblem(spec: unknown): string | undefined {
  for (const list of ["containers", "initContainers"]) {
    const value = at(spec, list);
    if (value !== undefined && value !== null && !Array.isArray(value)) {
      return `json: cannot unmarshal ${typeName(value)} into Go struct field PodSpec.spec.${list} of type []v1.Container`;
    }
    for (const container of objectsIn(value)) {
      const problem = quantityProblem(container);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

/** The error of Go's decoder about a built-in object; undefined when it would take it. */
export function goProblem(kind: string, body: JsonObject): string | undefined {
  const ofPod =
    kind === "Pod" ? containersProblem(body["spec"]) : containersProblem(at(body, "spec", "template", "spec"));
  return (
    metadataProblem(body["metadata"]) ??
    (kind === "ConfigMap" ? textMapProblem(body["data"], "ConfigMap.data") : undefined) ??
    ofPod
  );
}

/** Checks the metadata of every kind, custom resources too. */
function metadataProblem(metadata: unknown): string | undefined {
  return (
    textMapProblem(at(metadata, "labels"), "ObjectMeta.metadata.labels") ??
    textMapProblem(at(metadata, "annotations"), "ObjectMeta.metadata.annotations")
  );
}

export const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** The bytes before every body: "k8s" and a zero. */
const MAGIC = "k8s\0";

interface Field {
  readonly number: number;
  /** a varint, or the bytes of everything that has a length */
  readonly value: number | Buffer;
}

function varint(bytes: Buffer, from: number): { value: number; next: number } {
  let value = 0;
  let factor = 1;
  let next = from;
  for (;;) {
    const byte = bytes[next] ?? 0;
    value += (byte & 127) * factor;
    factor *= 128;
    next += 1;
    if (byte < 128) return { value, next };
  }
}

const FIXED_LENGTHS: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

function* fieldsOf(bytes: Buffer): Generator<Field> {
  let position = 0;
  while (position < bytes.length) {
    const tag = varint(bytes, position);
    const wire = tag.value % 8;
    const number = Math.floor(tag.value / 8);
    if (wire === 0) {
      const { value, next } = varint(bytes, tag.next);
      position = next;
      yield { number, value };
    } else {
      const length = wire === 2 ? varint(bytes, tag.next) : { value: FIXED_LENGTHS[wire] ?? 0, next: tag.next };
      position = length.next + length.value;
      yield { number, value: bytes.subarray(length.next, position) };
    }
  }
}

function single(value: number | Buffer, type: string, messages: Messages): unknown {
  if (typeof value === "number") return type === "boolean" ? value === 1 : value;
  if (type === "text") return value.toString("utf8");
  if (type === "base64") return value.toString("base64");
  return type === "bytes" ? value : message(value, type, messages);
}

function entryOf(value: number | Buffer, type: string, messages: Messages): JsonObject {
  const parts = typeof value === "number" ? [] : [...fieldsOf(value)];
  const [key, item] = [1, 2].map((number) => parts.find((part) => part.number === number)?.value ?? Buffer.alloc(0));
  return { [asText(single(key ?? 0, "text", messages))]: single(item ?? 0, type, messages) };
}

function merged(before: unknown, { value }: Field, type: string, messages: Messages): unknown {
  if (type.endsWith("[]")) return [...asList(before), single(value, type.slice(0, -2), messages)];
  if (type.endsWith("{}")) return { ...asObject(before), ...entryOf(value, type.slice(0, -2), messages) };
  return single(value, type, messages);
}

function message(bytes: Buffer, name: string, messages: Messages): JsonObject {
  const result: JsonObject = {};
  for (const part of fieldsOf(bytes)) {
    const [field, type] = messages[name]?.[part.number] ?? ["", ""];
    if (field !== "") result[field] = merged(result[field], part, type, messages);
  }
  // Go writes empty texts, JSON leaves them out.
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== ""));
}

/** The object as JSON, its fields as far as `messages` has them; undefined for a kind that is not there. */
export function fromProtobuf(body: Buffer, messages: Messages = MESSAGES): JsonObject | undefined {
  if (body.subarray(0, MAGIC.length).toString("latin1") !== MAGIC) return undefined;
  const envelope = message(body.subarray(MAGIC.length), "Unknown", messages);
  const kind = asText(at(envelope, "typeMeta", "kind"));
  const raw = envelope["raw"];
  if (messages[kind]?.[1]?.[0] !== "metadata" || !Buffer.isBuffer(raw)) return undefined;
  return { apiVersion: at(envelope, "typeMeta", "apiVersion"), kind, ...message(raw, kind, messages) };
}

/** The protobuf fields of kubectl create: field number → name and type, from the generated.proto of k8s.io/api. */

/** A message by its name here; "text[]" repeats, "text{}" is a map from text. */
type FieldType = string;

export type Messages = Readonly<Record<string, Readonly<Record<number, readonly [string, FieldType]>>>>;

export const MESSAGES: Messages = {
  Unknown: { 1: ["typeMeta", "TypeMeta"], 2: ["raw", "bytes"] },
  TypeMeta: { 1: ["apiVersion", "text"], 2: ["kind", "text"] },
  ObjectMeta: {
    1: ["name", "text"],
    2: ["generateName", "text"],
    3: ["namespace", "text"],
    11: ["labels", "text{}"],
    12: ["annotations", "text{}"],
    14: ["finalizers", "text[]"],
  },
  Namespace: { 1: ["metadata", "ObjectMeta"] },
  ConfigMap: {
    1: ["metadata", "ObjectMeta"],
    2: ["data", "text{}"],
    3: ["binaryData", "base64{}"],
    4: ["immutable", "boolean"],
  },
  Secret: { 1: ["metadata", "ObjectMeta"], 2: ["data", "base64{}"], 3: ["type", "text"], 4: ["stringData", "text{}"] },
  ServiceAccount: { 1: ["metadata", "ObjectMeta"] },
  Deployment: { 1: ["metadata", "ObjectMeta"], 2: ["spec", "DeploymentSpec"] },
  DeploymentSpec: { 1: ["replicas", "integer"], 2: ["selector", "LabelSelector"], 3: ["template", "PodTemplateSpec"] },
  LabelSelector: { 1: ["matchLabels", "text{}"] },
  PodTemplateSpec: { 1: ["metadata", "ObjectMeta"], 2: ["spec", "PodSpec"] },
  PodSpec: { 2: ["containers", "Container[]"], 3: ["restartPolicy", "text"] },
  Container: {
    1: ["name", "text"],
    2: ["image", "text"],
    3: ["command", "text[]"],
    4: ["args", "text[]"],
    6: ["ports", "ContainerPort[]"],
    7: ["env", "EnvVar[]"],
  },
  ContainerPort: { 1: ["name", "text"], 3: ["containerPort", "integer"], 4: ["protocol", "text"] },
  EnvVar: { 1: ["name", "text"], 2: ["value", "text"] },
};
