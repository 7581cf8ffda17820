/** Reads the protobuf bodies that kubectl create sends for a few built-in kinds; answers are never protobuf. */
import { asList, asObject, asText, at, type JsonObject } from "../storage/json.ts";

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
