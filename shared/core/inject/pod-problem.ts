/** Decides whether something that claims to be a pod can be read as one, as far as it is read here. */
import { decodeGo } from "../lib/decode-go.ts";
import {
  BOOLEAN,
  each,
  type GoField,
  type GoType,
  list,
  map,
  optional,
  QUANTITY,
  STRING,
  struct,
} from "../lib/go-type.ts";
import { isRawNumber } from "../lib/json-number.ts";
import { isJsonObject, type JsonObject } from "../lib/json-object.ts";

const OWNER = struct({ ...each("apiVersion kind name uid", optional(STRING)), controller: optional(BOOLEAN) });

const METADATA = struct({
  ...each("name generateName namespace deletionTimestamp", optional(STRING)),
  ...each("labels annotations", optional(map(STRING))),
  ownerReferences: optional(list(OWNER)),
});

const NAMED = list(struct({ name: optional(STRING) }));

const CONTAINER = struct({
  ...each("name image restartPolicy", optional(STRING)),
  env: optional(list(struct(each("name value", optional(STRING))))),
  resources: optional(struct(each("limits requests", optional(map(QUANTITY))))),
  volumeMounts: optional(list(struct(each("name mountPath subPathExpr", optional(STRING))))),
  volumeDevices: optional(list(struct(each("name devicePath", optional(STRING))))),
});

const POD = struct({
  metadata: optional(METADATA),
  spec: optional(
    struct({
      ...each("initContainers containers", optional(list(CONTAINER))),
      ...each("volumes imagePullSecrets", optional(NAMED)),
      readinessGates: optional(list(struct({ conditionType: optional(STRING) }))),
    }),
  ),
  status: optional(struct({ phase: optional(STRING) })),
});

/** What nearly every quantity looks like; these decode. */
const PLAIN_QUANTITY = /^\d{1,9}(?:m|k|Ki|[MGTPE]i?)?$/;

type Check = (raw: unknown) => boolean;

/** Whether it decodes, without the cost of decoding it: every pod is looked at, next to none has a problem. */
function checkOf(type: GoType): Check {
  const check = givenCheckOf(type);
  return (raw) => raw === undefined || raw === null || check(raw);
}

function givenCheckOf(type: GoType): Check {
  switch (type.kind) {
    case "string":
      return (raw) => typeof raw === "string";
    case "boolean":
      return (raw) => typeof raw === "boolean";
    case "quantity":
      return (raw) => (typeof raw === "string" && PLAIN_QUANTITY.test(raw)) || isDecoded(type, raw);
    case "struct":
      return structCheck(type.fields);
    case "list":
      return listCheck(checkOf(type.of));
    case "map":
      return mapCheck(checkOf(type.of));
    default:
      return (raw) => isDecoded(type, raw);
  }
}

function structCheck(fields: ReadonlyMap<string, GoField>): Check {
  const checks = Array.from(fields, ([name, { type }]) => ({ name, fits: checkOf(type) }));
  return (raw) => {
    if (!isObject(raw)) return false;
    for (const { name, fits } of checks) if (!fits(raw[name])) return false;
    return true;
  };
}

function listCheck(fits: Check): Check {
  return (raw) => Array.isArray(raw) && raw.every((item) => item !== null && fits(item));
}

function mapCheck(fits: Check): Check {
  return (raw) => isObject(raw) && Object.values(raw).every(fits);
}

function isObject(raw: unknown): raw is JsonObject {
  return isJsonObject(raw) && (raw["rawJSON"] === undefined || !isRawNumber(raw));
}

function isDecoded(type: GoType, raw: unknown): boolean {
  return decodeGo(type, raw).kind === "Decoded";
}

const isPod = checkOf(POD);

/** A sentence that names the field; undefined for a pod. */
export function podProblem(object: unknown): string | undefined {
  if (object === undefined || object === null) return "there is no content to decode";
  if (isPod(object)) return undefined;
  const decoded = decodeGo(POD, object);
  if (decoded.kind === "DecodeError") return decoded.message;
  return holdsNull(object) ? "a list holds null where an object is meant" : undefined;
}

/** API servers send an object in its place. */
function holdsNull(value: unknown): boolean {
  if (Array.isArray(value) && value.includes(null)) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(holdsNull);
}
