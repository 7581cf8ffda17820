/** Raw JSON after Go has decoded it into a type: known fields in Go's order, zeros dropped. */
import { compareUtf8 } from "../json/go-json.ts";
import { isRawNumber } from "../json/json-number.ts";
import { formatQuantity, readFieldQuantity } from "../quantity/quantity.ts";
import { utcSeconds } from "../rfc3339.ts";
import type { GoField, GoType, Struct } from "./go-type.ts";

/** Go's zero time. */
const ZERO_TIME = "0001-01-01T00:00:00Z";

/** JSON that does not fit its type. */
export interface DecodeError {
  readonly kind: "DecodeError";
  /** one sentence with the path */
  readonly message: string;
}

export interface Decoded<T> {
  readonly kind: "Decoded";
  readonly value: T;
}

type Fields = Readonly<Record<string, unknown>>;
/** The current position, and the errors so far. */
interface Position {
  readonly path: string;
  readonly errors: string[];
}

function nameOf(raw: unknown): string {
  if (typeof raw === "number" || isRawNumber(raw)) return `the number ${JSON.stringify(raw)}`;
  if (Array.isArray(raw)) return "a list";
  return typeof raw === "object" ? "an object" : `a ${typeof raw}`;
}

function refuse(wanted: string, raw: unknown, { path, errors }: Position): undefined {
  errors.push(`${path === "" ? "the object" : path} must be ${wanted}, not ${nameOf(raw)}`);
  return undefined;
}

function decodeString(raw: unknown, position: Position): unknown {
  return typeof raw === "string" ? raw : refuse("a string", raw, position);
}

function decodeBoolean(raw: unknown, position: Position): unknown {
  return typeof raw === "boolean" ? raw : refuse("true or false", raw, position);
}

/** Decodes int32 or int64. A number that JavaScript cannot hold stays a text. */
function decodeInteger(raw: unknown, bits: 32 | 64, position: Position): unknown {
  const text = typeof raw === "number" ? String(raw) : isRawNumber(raw) ? raw.rawJSON : "";
  const isInteger = /^-?\d+$/.test(text) && BigInt.asIntN(bits, BigInt(text)) === BigInt(text);
  return isInteger ? raw : refuse(`a ${bits}-bit integer`, raw, position);
}

function decodeQuantity(raw: unknown, position: Position): unknown {
  const text = isRawNumber(raw) ? raw.rawJSON : raw;
  if (typeof text !== "string" && typeof text !== "number") return refuse("a quantity", raw, position);
  const quantity = readFieldQuantity(text);
  if (!("kind" in quantity)) return formatQuantity(quantity);
  position.errors.push(`${position.path}: ${quantity.message}`);
  return undefined;
}

function decodeTime(raw: unknown, position: Position): unknown {
  const time = typeof raw === "string" ? utcSeconds(raw) : undefined;
  if (time === ZERO_TIME) return null;
  return time ?? refuse("an RFC 3339 timestamp", raw, position);
}

function decodeList(of: GoType, raw: unknown, position: Position): unknown {
  if (!Array.isArray(raw)) return refuse("a list", raw, position);
  const { path, errors } = position;
  return raw.map((item, index) => decodeValue(of, item, { path: `${path}[${index}]`, errors }));
}

/** True for an object. Null never reaches this function, because it counts as absent. */
function isObject(raw: unknown): raw is Fields {
  return typeof raw === "object" && !Array.isArray(raw) && !isRawNumber(raw);
}

function decodeMap(of: GoType, raw: unknown, position: Position): unknown {
  if (!isObject(raw)) return refuse("an object", raw, position);
  const { path, errors } = position;
  const entries = Object.entries(raw).sort(([a], [b]) => compareUtf8(a, b));
  return Object.fromEntries(
    entries.map(([key, value]) => [key, decodeValue(of, value, { path: `${path}[${key}]`, errors })]),
  );
}

function decodeStruct({ fields, isUnion }: Struct, raw: unknown, position: Position): unknown {
  if (!isObject(raw)) return refuse("an object", raw, position);
  const { path, errors } = position;
  const members: [string, unknown][] = [];
  for (const [name, field] of fields) {
    const value = decodeField(field, Object.hasOwn(raw, name) ? raw[name] : undefined, {
      path: path === "" ? name : `${path}.${name}`,
      errors,
    });
    if (value !== undefined) members.push([name, value]);
  }
  if (isUnion && members.length === 1)
    members.push(...Object.entries(raw).filter(([name, value]) => value !== null && !fields.has(name)));
  return Object.fromEntries(members);
}

function isEmpty(value: unknown): boolean {
  if (value === "" || value === 0 || value === false) return true;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0 && !isRawNumber(value);
}

/** Decodes a field; undefined: Go does not print it. */
function decodeField({ type, absent }: GoField, raw: unknown, position: Position): unknown {
  const isGiven = raw !== undefined && raw !== null;
  if (absent === "zero") return decodeValue(type, raw, position);
  if (!isGiven) return absent === "null" ? null : undefined;
  const value = decodeValue(type, raw, position);
  return absent === "omitted" && isEmpty(value) ? undefined : value;
}

/** The zero value that Go prints for a missing one. */
function zeroOf(type: GoType, position: Position): unknown {
  switch (type.kind) {
    case "string":
      return "";
    case "boolean":
      return false;
    case "int32":
    case "int64":
    case "intOrString":
      return 0;
    case "quantity":
      return "0";
    case "struct":
      return decodeStruct(type, {}, position);
    case "list":
    case "map":
    case "time":
    case "raw":
      return null;
    default:
      return type satisfies never;
  }
}

function decodeValue(type: GoType, raw: unknown, position: Position): unknown {
  if (raw === undefined || raw === null) return zeroOf(type, position);
  switch (type.kind) {
    case "string":
      return decodeString(raw, position);
    case "boolean":
      return decodeBoolean(raw, position);
    case "int32":
      return decodeInteger(raw, 32, position);
    case "int64":
      return decodeInteger(raw, 64, position);
    case "intOrString":
      return typeof raw === "string" ? decodeString(raw, position) : decodeInteger(raw, 32, position);
    case "quantity":
      return decodeQuantity(raw, position);
    case "time":
      return decodeTime(raw, position);
    case "raw":
      return raw;
    case "list":
      return decodeList(type.of, raw, position);
    case "map":
      return decodeMap(type.of, raw, position);
    case "struct":
      return decodeStruct(type, raw, position);
    default:
      return type satisfies never;
  }
}

/**
 * The value as Go holds and prints it: without unknown or wrongly cased fields, or zero values with omitempty; fields
 * in Go's order, quantities canonical. An empty list with omitempty is dropped like an absent one. The first fault is
 * the error. Source: Go encoding/json, case-sensitive as Kubernetes uses it.
 */
export function decodeGo<T>(type: GoType<T>, raw: unknown): Decoded<T> | DecodeError {
  const errors: string[] = [];
  const value = decodeValue(type, raw, { path: "", errors });
  const [message] = errors;
  return message === undefined ? { kind: "Decoded", value: value as T } : { kind: "DecodeError", message };
}
