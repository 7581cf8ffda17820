/** The parts of a pod that cannot be decoded, among the parts that are read. */
import type { JsonObject } from "../../go/json/json-object.ts";
import { decodeGo } from "../../go/types/decode-go.ts";
import { BOOLEAN, each, type GoType, list, map, optional, QUANTITY, STRING, struct } from "../../go/types/go-type.ts";

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

/** A sentence that names the field; undefined for a pod. */
export function decodingProblem(object: unknown): string | undefined {
  const decoded = decodeGo(POD, object);
  if (decoded.kind === "DecodeError") return decoded.message;
  return holdsNull(POD, object) ? "a list holds null where an object is meant" : undefined;
}

/** True for an object in place of a value, as API servers send. A decoded value has the form of its type. */
function holdsNull(type: GoType, raw: unknown): boolean {
  if (raw === undefined || raw === null) return false;
  if (type.kind === "list")
    return (raw as readonly unknown[]).some((item) => item === null || holdsNull(type.of, item));
  if (type.kind !== "struct") return false;
  const fields = raw as JsonObject;
  return Array.from(type.fields).some(([name, field]) => holdsNull(field.type, fields[name]));
}
