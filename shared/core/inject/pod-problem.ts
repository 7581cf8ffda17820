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
import { isJsonObject } from "../lib/json-object.ts";

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

function fieldsFit(fields: ReadonlyMap<string, GoField>, raw: unknown): boolean {
  if (!isJsonObject(raw) || isRawNumber(raw)) return false;
  for (const [name, { type }] of fields) if (!fits(type, raw[name])) return false;
  return true;
}

/** What nearly every quantity looks like; these decode. */
const PLAIN_QUANTITY = /^\d{1,9}(?:m|k|Ki|[MGTPE]i?)?$/;

function isDecoded(type: GoType, raw: unknown): boolean {
  return decodeGo(type, raw).kind === "Decoded";
}

/** Whether it decodes, without the cost of decoding it: every pod is looked at, next to none has a problem. */
function fits(type: GoType, raw: unknown): boolean {
  if (raw === undefined || raw === null) return true;
  switch (type.kind) {
    case "string":
      return typeof raw === "string";
    case "boolean":
      return typeof raw === "boolean";
    case "quantity":
      return (typeof raw === "string" && PLAIN_QUANTITY.test(raw)) || isDecoded(type, raw);
    case "struct":
      return fieldsFit(type.fields, raw);
    case "list":
      return Array.isArray(raw) && raw.every((item) => fits(type.of, item));
    case "map":
      return isJsonObject(raw) && !isRawNumber(raw) && Object.values(raw).every((value) => fits(type.of, value));
    default:
      return isDecoded(type, raw);
  }
}

/** A sentence that names the field; undefined for a pod. */
export function podProblem(object: unknown): string | undefined {
  if (object === undefined || object === null) return "there is no content to decode";
  if (fits(POD, object)) return undefined;
  const decoded = decodeGo(POD, object);
  return decoded.kind === "DecodeError" ? decoded.message : undefined;
}
