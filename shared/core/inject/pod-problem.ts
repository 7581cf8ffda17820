/** Decides whether something that claims to be a pod can be read as one, as far as it is read here. */
import { decodeGo } from "../lib/decode-go.ts";
import { BOOLEAN, each, list, map, optional, QUANTITY, STRING, struct } from "../lib/go-type.ts";

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
export function podProblem(object: unknown): string | undefined {
  if (object === undefined || object === null) return "there is no content to decode";
  const decoded = decodeGo(POD, object);
  return decoded.kind === "DecodeError" ? decoded.message : undefined;
}
