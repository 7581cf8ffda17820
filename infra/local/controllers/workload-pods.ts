/** Shared by the workload controllers: pods from a template, and the rule of readiness. */

import type { Kind } from "../kinds/kind.ts";
import { POD } from "../kinds/registry.ts";
import { type Api, type Caller, internalCall } from "../storage/api.ts";
import {
  type ApiObject,
  asObject,
  at,
  isEqual,
  type JsonObject,
  keyOf,
  type Metadata,
  objectsIn,
  textMap,
} from "../storage/json.ts";
import { isStatus } from "../storage/status-error.ts";
import { changeObject } from "../storage/update.ts";
import { createObject, deleteObject } from "../storage/write.ts";

export function ownerReference(owner: ApiObject): JsonObject {
  const { name, uid } = owner.metadata;
  return { apiVersion: owner.apiVersion, kind: owner.kind, name, uid, controller: true, blockOwnerDeletion: true };
}

export function isReady(pod: ApiObject): boolean {
  const conditions = objectsIn(at(pod, "status", "conditions"));
  return conditions.some((condition) => condition["type"] === "Ready" && condition["status"] === "True");
}

/** True for a pod that is neither finished nor being deleted. */
export function isActive(pod: ApiObject): boolean {
  const phase = at(pod, "status", "phase");
  return pod.metadata.deletionTimestamp === undefined && phase !== "Succeeded" && phase !== "Failed";
}

/** Creates a pod from `spec.template` of its owner. */
export function createPod(api: Api, caller: Caller, owner: ApiObject, metadata: Metadata): Promise<ApiObject> {
  const template = asObject(at(owner, "spec", "template"));
  const namespace = owner.metadata.namespace ?? "";
  const body = {
    metadata: {
      ...metadata,
      labels: { ...textMap(at(template, "metadata", "labels")), ...metadata.labels },
      ...(at(template, "metadata", "annotations") === undefined
        ? {}
        : { annotations: at(template, "metadata", "annotations") }),
      ownerReferences: [ownerReference(owner)],
    },
    spec: template["spec"],
  };
  return createObject(api, internalCall(caller, POD, { namespace, name: metadata.name ?? "" }), body);
}

export async function deletePod(api: Api, caller: Caller, pod: ApiObject): Promise<void> {
  try {
    await deleteObject(api, internalCall(caller, POD, keyOf(pod)), { preconditions: { uid: pod.metadata.uid } });
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
  }
}

interface Writer {
  readonly caller: Caller;
  readonly kind: Kind;
}

/** Writes a status when it says something new. */
export async function writeStatus(
  api: Api,
  { caller, kind }: Writer,
  owner: ApiObject,
  status: JsonObject,
): Promise<void> {
  if (isEqual(owner["status"], status)) return;
  const call = internalCall(caller, kind, keyOf(owner), "status");
  const transform = (current: ApiObject): ApiObject => ({ ...current, status });
  await changeObject(api, call, { verb: "update", transform });
}
