/** pods/binding, pods/eviction and pods/ephemeralcontainers. */

import { type Answer, type ApiRequest, parsedBody } from "../http/http-message.ts";
import type { Api, Call } from "../storage/api.ts";
import { deleteObject } from "../storage/delete.ts";
import { asObject, at, childOf, isEqual, objectsIn, textAt } from "../storage/json.ts";
import { type ApiObject, storageKey, timestamp } from "../storage/object.ts";
import { conflict, notFound } from "../storage/status-error.ts";
import { commit } from "../storage/write.ts";
import { type FieldError, forbiddenField } from "./field-error.ts";

function scheduled(pod: ApiObject, nodeName: string, now: string): ApiObject {
  const next = structuredClone(pod);
  childOf(next, "spec")["nodeName"] = nodeName;
  const status = childOf(next, "status");
  const others = objectsIn(status["conditions"]).filter((condition) => condition["type"] !== "PodScheduled");
  const condition = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: now };
  status["conditions"] = [...others, condition];
  return next;
}

/** Binds a pod to a node, once. Throws 404 and 409. */
export function bind(api: Api, call: Call, nodeName: string): void {
  const pod = api.store.get(call.kind.collection, storageKey(call));
  if (pod === undefined) throw notFound(call.kind, call.name);
  const bound = textAt(pod, "spec", "nodeName");
  if (bound !== "") throw conflict(call.kind, call.name, `pod ${call.name} is already assigned to node "${bound}"`);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(call.kind, call.name, `pod ${call.name} is being deleted, cannot be assigned to a host`);
  }
  if (!call.dryRun) commit(api, call, "update", scheduled(pod, nodeName, timestamp(api.clock.now())));
}

const CREATED = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

export async function bindPod(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  bind(api, call, textAt(parsedBody(request), "target", "name"));
  return { code: 201, body: CREATED };
}

export async function evictPod(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const options = asObject(at(parsedBody(request), "deleteOptions"));
  await deleteObject(api, { ...call, subresource: "" }, options);
  return { code: 201, body: CREATED };
}

const FIELD = "ephemeralContainers";

/** The current pod with the wanted ephemeral containers. */
export function debuggedOnly(wanted: ApiObject, current: ApiObject): ApiObject {
  const spec = { ...asObject(current["spec"]), [FIELD]: asObject(wanted["spec"])[FIELD] ?? [] };
  return structuredClone({ ...current, spec });
}

export function debugErrors(next: ApiObject, current: ApiObject): readonly FieldError[] {
  const now = objectsIn(asObject(next["spec"])[FIELD]);
  const isKept = objectsIn(asObject(current["spec"])[FIELD]).every((one) => now.some((other) => isEqual(one, other)));
  return isKept ? [] : [forbiddenField(`spec.${FIELD}`, "existing ephemeral containers may not be removed or changed")];
}
