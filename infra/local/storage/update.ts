/** Guarded change of an existing object: read, change, admit, compare, write. It repeats after a conflict. */
import { mutate } from "../admission/admission.ts";
import { convert } from "../admission/conversion.ts";
import { decodeObject } from "../http/decode.ts";
import type { Kind } from "../kinds/kind.ts";
import { checkRoom, debugErrors, debuggedOnly, resizedOnly, resizeErrors } from "../kinds/pod-subresource.ts";
import { strategyOf } from "../kinds/strategy.ts";
import type { Api, Call } from "./api.ts";
import { type ApiObject, asObject, isEqual, type JsonObject, keyOf, type Metadata, storageKey } from "./json.ts";
import { badRequest, conflict, type FieldError, forbiddenField, invalid, MODIFIED, notFound } from "./status-error.ts";
import type { WriteVerb } from "./store.ts";
import { admitted, commit, commitRemoval, isUnchanged, objectErrors, throwFieldErrors } from "./write.ts";

/** Makes the wanted object from the current one, in the call's version. It may run several times. */
export type Transform = (current: ApiObject) => ApiObject;

export interface Change {
  readonly verb: WriteVerb;
  readonly transform: Transform;
}

const ATTEMPTS = 5;
/** Options of updates and of patches. */
const UPDATE_OPTIONS = { kind: "UpdateOptions", apiVersion: "meta.k8s.io/v1" };

function specOf(object: ApiObject): JsonObject {
  const { metadata: _metadata, status: _status, kind: _kind, apiVersion: _apiVersion, ...spec } = object;
  return spec;
}

/** Keeps the API server's own fields as they were. */
function keepSystemFields(metadata: Metadata, old: Metadata): void {
  metadata.resourceVersion = old.resourceVersion ?? "";
  metadata.uid ??= old.uid ?? "";
  metadata.creationTimestamp ??= old.creationTimestamp ?? null;
  for (const field of ["deletionTimestamp", "deletionGracePeriodSeconds", "generation"] as const) {
    if (old[field] === undefined) delete metadata[field];
    else Object.assign(metadata, { [field]: old[field] });
  }
}

function writableHalf(call: Call, wanted: ApiObject, current: ApiObject): ApiObject {
  if (call.subresource === "status") return statusOnly(call.kind, wanted, current);
  if (call.subresource === "ephemeralcontainers") return debuggedOnly(wanted, current);
  return call.subresource === "resize" ? resizedOnly(wanted, current) : withoutStatusChange(call, wanted, current);
}

function settle(call: Call, wanted: ApiObject, current: ApiObject): ApiObject {
  const object = writableHalf(call, wanted, current);
  keepSystemFields(object.metadata, current.metadata);
  if (call.subresource === "") strategyOf(call.kind).prepareUpdate(object);
  if (call.kind.hasGeneration && !isEqual(specOf(object), specOf(current))) {
    object.metadata.generation = (current.metadata.generation ?? 0) + 1;
  }
  return object;
}

function immutableErrors(next: ApiObject, current: ApiObject): readonly FieldError[] {
  const fields = ["name", "namespace", "uid", "creationTimestamp"] as const;
  return fields.flatMap((field) => {
    const value = next.metadata[field];
    return value === current.metadata[field] ? [] : [invalid(`metadata.${field}`, value, "field is immutable")];
  });
}

function finalizerErrors(next: ApiObject, current: ApiObject): readonly FieldError[] {
  if (current.metadata.deletionTimestamp === undefined) return [];
  const added = (next.metadata.finalizers ?? []).filter((one) => !current.metadata.finalizers?.includes(one));
  if (added.length === 0) return [];
  const names = added.map((name) => JSON.stringify(name)).join(", ");
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${names}}`;
  return [forbiddenField("metadata.finalizers", why)];
}

function updateErrors(call: Call, next: ApiObject, current: ApiObject): readonly FieldError[] {
  const { validateUpdate, validateStatus } = strategyOf(call.kind);
  return [
    ...immutableErrors(next, current),
    ...finalizerErrors(next, current),
    ...(call.subresource === "" ? validateUpdate(next, current) : []),
    ...(call.subresource === "status" ? validateStatus(next, current) : []),
    ...(call.subresource === "ephemeralcontainers" ? debugErrors(next, current) : []),
    ...(call.subresource === "resize" ? resizeErrors(asObject(next["spec"]), asObject(current["spec"])) : []),
    ...objectErrors(call, next),
  ];
}

/** True if an object can be removed: its last finalizer is gone, and no kubelet has to end the pod. */
function isDone(object: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length === 0;
}

function checkVersion(call: Call, wanted: ApiObject, current: ApiObject): void {
  const version = wanted.metadata.resourceVersion ?? "";
  const isAsked = version !== "" && version !== "0";
  if (isAsked && version !== current.metadata.resourceVersion) throw conflict(call.kind, call.name, MODIFIED);
}

async function attempt(api: Api, call: Call, change: Change, stored: ApiObject): Promise<ApiObject | undefined> {
  const [current = stored] = await convert([stored], call.kind);
  const wanted = change.transform(current);
  checkVersion(call, wanted, current);
  const options = { ...UPDATE_OPTIONS, ...(call.dryRun ? { dryRun: ["All"] } : {}) };
  const request = { call, operation: "UPDATE" as const, object: wanted, oldObject: current, options };
  const mutated = (await mutate(api, request)) ?? wanted;
  const next = settle(call, structuredClone(mutated), current);
  throwFieldErrors(call, next, updateErrors(call, next, current));
  if (call.subresource === "resize") checkRoom(api, call, next);
  const outcome = await admitted(api, request, next);
  if (api.store.get(call.kind.collection, storageKey(keyOf(stored))) !== stored) return undefined;
  return finish(api, call, change.verb, { next: outcome, stored });
}

function finish(api: Api, call: Call, verb: WriteVerb, states: { next: ApiObject; stored: ApiObject }): ApiObject {
  const { next, stored } = states;
  if (call.dryRun) return next;
  if (isDone(next)) return commitRemoval(api, call, verb, next);
  return isUnchanged(next, stored) ? stored : commit(api, call, verb, next);
}

/** Returns the stored object, in the version of the call. Throws 404, 409, 422 and errors of admission. */
export async function changeObject(api: Api, call: Call, change: Change): Promise<ApiObject> {
  for (let tried = 0; tried < ATTEMPTS; tried += 1) {
    const stored = api.store.get(call.kind.collection, storageKey(call));
    if (stored === undefined) throw notFound(call.kind, call.name);
    const written = await attempt(api, call, change, stored);
    if (written !== undefined) {
      const [answer = written] = await convert([written], call.kind);
      return answer;
    }
  }
  throw conflict(call.kind, call.name, MODIFIED);
}

function checkPut(call: Call, object: ApiObject, current: ApiObject): void {
  if (call.kind.custom !== undefined && (object.metadata.resourceVersion ?? "") === "") {
    throwFieldErrors(call, object, [invalid("metadata.resourceVersion", 0, "must be specified for an update")]);
  }
  const uid = object.metadata.uid;
  if (uid !== undefined && uid !== current.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`;
    throw conflict(call.kind, call.name, why);
  }
}

/** Throws 400 for an object with another name than the URL. */
export function checkName(call: Call, { metadata }: ApiObject): void {
  if (metadata.name === call.name) return;
  throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${call.name})`);
}

/** PUT of a whole object. */
export function replaceObject(api: Api, call: Call, body: unknown): Promise<ApiObject> {
  const decoded = decodeObject(call, body);
  const { namespace } = decoded.metadata;
  checkName(call, decoded);
  if (call.kind.namespaced && namespace !== undefined && namespace !== call.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const transform = (current: ApiObject): ApiObject => {
    checkPut(call, decoded, current);
    const metadata = call.kind.namespaced ? { ...decoded.metadata, namespace: call.namespace } : decoded.metadata;
    return { ...decoded, metadata };
  };
  return changeObject(api, call, { verb: "update", transform });
}

// The part of an object that a write may change: the status, or everything except the status.

/** Kinds whose labels and annotations may be changed through /status. */
const WITH_METADATA: ReadonlySet<string> = new Set(["/pods", "/namespaces", "/nodes"]);

function statusOf(object: ApiObject): { status?: unknown } {
  return object["status"] === undefined ? {} : { status: object["status"] };
}

/** The current object with the wanted status. */
export function statusOnly(kind: Kind, wanted: ApiObject, current: ApiObject): ApiObject {
  const { status: _status, ...rest } = current;
  const hasMetadata = WITH_METADATA.has(kind.collection);
  const metadata = hasMetadata
    ? {
        ...wanted.metadata,
        ...(current.metadata.ownerReferences && { ownerReferences: current.metadata.ownerReferences }),
      }
    : // Whether it was written for another object is checked all the same.
      { ...current.metadata, uid: wanted.metadata.uid ?? current.metadata.uid ?? "" };
  return structuredClone({ ...rest, metadata, ...statusOf(wanted) });
}

/** The wanted object with the current status, if the kind keeps them apart. */
export function withoutStatusChange(call: Call, wanted: ApiObject, current: ApiObject): ApiObject {
  if (!call.kind.hasStatus) return wanted;
  const { status: _status, ...rest } = wanted;
  return structuredClone({ ...rest, metadata: wanted.metadata, ...statusOf(current) });
}
