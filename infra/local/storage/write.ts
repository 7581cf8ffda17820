/** The last steps of every write: validation, admission of the result, storage version, and the record. */
import { mutate, validate } from "../admission/admission.ts";
import { convert } from "../admission/conversion.ts";
import type { AdmissionRequest } from "../admission/webhook-call.ts";
import { decodeObject } from "../http/decode.ts";
import { generatedName, metadataErrors, randomUid } from "../kinds/names.ts";
import { NAMESPACE } from "../kinds/registry.ts";
import { strategyOf } from "../kinds/strategy.ts";
import { schemaErrors } from "../schema/schema-validate.ts";
import type { Api, Call } from "./api.ts";
import {
  type ApiObject,
  asText,
  at,
  copyOf,
  isEqual,
  isObject,
  type JsonObject,
  keyOf,
  storageKey,
  textAt,
  timestamp,
} from "./json.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  type FieldError,
  forbidden,
  invalidObject,
  MODIFIED,
  notFound,
  plainError,
} from "./status-error.ts";
import type { WriteVerb } from "./store.ts";

/** Throws 422 if there are errors. */
export function throwFieldErrors(call: Call, object: ApiObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject(call.kind, object.metadata.name ?? "", errors);
}

/** Errors of an object by itself. */
export function objectErrors(call: Call, object: ApiObject): readonly FieldError[] {
  const { kind } = call;
  const { metadata: _metadata, ...rest } = object;
  const schema = kind.custom === undefined ? [] : schemaErrors(rest, withoutMetadata(kind.custom.schema), "");
  return [...metadataErrors(object, kind.plural), ...strategyOf(kind).validate(object), ...schema];
}

function withoutMetadata(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const required = Array.isArray(schema["required"]) ? schema["required"].filter((key) => key !== "metadata") : [];
  return { ...schema, required };
}

/** Runs the validating webhooks and returns the object to store. */
export async function admitted(api: Api, request: AdmissionRequest, object: ApiObject): Promise<ApiObject> {
  const metadata = { ...object.metadata };
  await validate(api, { ...request, object: { ...object, metadata } });
  const [stored] = await convert([object], api.registry.stored(request.call.kind));
  return stored ?? object;
}

/** True if a write would change nothing. The API server then writes nothing. */
export function isUnchanged(next: ApiObject, previous: ApiObject): boolean {
  return isEqual(withoutVersion(next), withoutVersion(previous));
}

function withoutVersion(object: ApiObject): ApiObject {
  const { resourceVersion: _resourceVersion, ...metadata } = object.metadata;
  return { ...object, metadata };
}

export function commit(api: Api, call: Call, verb: WriteVerb, object: ApiObject): ApiObject {
  const key = keyOf(object);
  const previous = api.store.get(call.kind.collection, `${key.namespace}/${key.name}`);
  const written = api.store.put(call.kind.collection, object);
  record(api, call, verb, { object: written, previous, isRemoved: false });
  return written;
}

/** Removes an object for good, and returns its last state. */
export function commitRemoval(api: Api, call: Call, verb: WriteVerb, object: ApiObject): ApiObject {
  const key = keyOf(object);
  const last = api.store.remove(call.kind.collection, `${key.namespace}/${key.name}`) ?? object;
  record(api, call, verb, { object: last, previous: object, isRemoved: true });
  return last;
}

interface Outcome {
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
  readonly isRemoved: boolean;
}

function record(api: Api, call: Call, verb: WriteVerb, outcome: Outcome): void {
  const { namespace, name } = keyOf(outcome.object);
  api.history.write({
    verb,
    userAgent: call.caller.userAgent,
    group: call.kind.group,
    resource: call.kind.plural,
    subresource: call.subresource,
    namespace,
    name,
    resourceVersion: outcome.object.metadata.resourceVersion ?? "",
    ...outcome,
  });
}

const CREATE_OPTIONS: JsonObject = { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" };

function place(call: Call, object: ApiObject): void {
  const { metadata } = object;
  if (!call.kind.namespaced) {
    delete metadata.namespace;
    return;
  }
  if (metadata.namespace !== undefined && metadata.namespace !== call.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  metadata.namespace = call.namespace;
}

/** Checks the namespace, as the admission plugin NamespaceLifecycle does. */
function checkNamespace(api: Api, call: Call): void {
  if (!call.kind.namespaced) return;
  const namespace = api.store.get(NAMESPACE.collection, `/${call.namespace}`);
  if (namespace === undefined) throw notFound(NAMESPACE, call.namespace);
  if (namespace.metadata.deletionTimestamp !== undefined) {
    const why = `unable to create new content in namespace ${call.namespace} because it is being terminated`;
    throw forbidden(call.kind, call.name, why);
  }
}

function fillSystemFields(api: Api, call: Call, object: ApiObject): void {
  const { metadata } = object;
  if ((metadata.name ?? "") === "" && (metadata.generateName ?? "") !== "") {
    metadata.name = generatedName(metadata.generateName ?? "", api.random);
  }
  metadata.uid = randomUid(api.random);
  metadata.creationTimestamp = timestamp(api.clock.now());
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.resourceVersion;
  if (call.kind.hasGeneration) metadata.generation = 1;
  else delete metadata.generation;
  if (call.kind.hasStatus && call.kind.custom !== undefined) delete object["status"];
  strategyOf(call.kind).prepareCreate(object);
}

function checkResourceVersion(object: ApiObject): void {
  const version = object.metadata.resourceVersion ?? "";
  if (version !== "" && version !== "0") throw plainError("resourceVersion should not be set on objects to be created");
}

/** Returns the stored object in the version of the call. */
export async function createObject(api: Api, call: Call, body: unknown): Promise<ApiObject> {
  const decoded = decodeObject(call, body);
  place(call, decoded);
  checkResourceVersion(decoded);
  const named: Call = { ...call, name: decoded.metadata.name ?? "" };
  checkNamespace(api, named);
  const options = call.dryRun ? { ...CREATE_OPTIONS, dryRun: ["All"] } : CREATE_OPTIONS;
  const request: AdmissionRequest = {
    call: named,
    operation: "CREATE",
    object: decoded,
    oldObject: undefined,
    options,
  };
  const object = copyOf((await mutate(api, request)) ?? decoded);
  fillSystemFields(api, named, object);
  throwFieldErrors(named, object, objectErrors(named, object));
  const final: Call = { ...named, name: object.metadata.name ?? "" };
  const stored = await admitted(api, { ...request, call: final }, object);
  if (api.store.get(call.kind.collection, storageKey(keyOf(stored))) !== undefined) {
    throw alreadyExists(call.kind, final.name);
  }
  checkNamespace(api, named);
  const written = call.dryRun ? stored : commit(api, call, "create", stored);
  const [answer] = await convert([written], call.kind);
  return answer ?? written;
}

// DELETE: at once, after a grace period, or after the last finalizer.

export interface Deletion {
  readonly object: ApiObject;
  readonly isRemoved: boolean;
}

const SYSTEM_NAMESPACES: ReadonlySet<string> = new Set(["default", "kube-system", "kube-public"]);

function checkPreconditions(call: Call, stored: ApiObject, options: JsonObject): void {
  const subject = { ...call.kind, plural: call.kind.kind };
  const uid = at(options, "preconditions", "uid");
  const version = at(options, "preconditions", "resourceVersion");
  const { metadata } = stored;
  if (typeof uid === "string" && uid !== metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`;
    throw conflict(subject, call.name, why);
  }
  if (typeof version === "string" && version !== metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${version}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`;
    throw conflict(subject, call.name, why);
  }
}

/** Seconds that the object may continue to exist; 0: none. */
function gracePeriod(call: Call, stored: ApiObject, options: JsonObject): number {
  if (call.kind.collection !== "/pods") return 0;
  const phase = textAt(stored, "status", "phase");
  if (textAt(stored, "spec", "nodeName") === "" || phase === "Succeeded" || phase === "Failed") return 0;
  const asked = options["gracePeriodSeconds"] ?? at(stored, "spec", "terminationGracePeriodSeconds") ?? 30;
  return Number(asked) < 0 ? 1 : Number(asked);
}

function propagation(options: JsonObject): string {
  if (options["orphanDependents"] === true) return "Orphan";
  return asText(options["propagationPolicy"]) || "Background";
}

function finalizersAfter(stored: ApiObject, options: JsonObject): string[] {
  const others = (stored.metadata.finalizers ?? []).filter(
    (name) => name !== "orphan" && name !== "foregroundDeletion",
  );
  const policy = propagation(options);
  if (policy === "Orphan") return [...others, "orphan"];
  return policy === "Foreground" ? [...others, "foregroundDeletion"] : others;
}

function marked(api: Api, call: Call, stored: ApiObject, options: JsonObject): ApiObject {
  const grace = gracePeriod(call, stored, options);
  const finalizers = finalizersAfter(stored, options);
  const { metadata } = stored;
  const before = metadata.deletionGracePeriodSeconds ?? Number.POSITIVE_INFINITY;
  const isSooner = metadata.deletionTimestamp === undefined || grace < before;
  const next: ApiObject = structuredClone(stored);
  if (finalizers.length > 0) next.metadata.finalizers = finalizers;
  else delete next.metadata.finalizers;
  if (isSooner) {
    next.metadata.deletionTimestamp = timestamp(api.clock.now() + grace * 1000);
    next.metadata.deletionGracePeriodSeconds = grace;
  }
  if (metadata.deletionTimestamp === undefined && metadata.generation !== undefined) {
    next.metadata.generation = metadata.generation + 1;
  }
  if (call.kind.collection === "/namespaces")
    next["status"] = { ...(isObject(next["status"]) ? next["status"] : {}), phase: "Terminating" };
  return next;
}

/** True if the object can be removed. A namespace stays until everything in it is gone. */
function mayGo(call: Call, object: ApiObject): boolean {
  const waits = call.kind.collection === "/namespaces" && at(object, "spec", "finalizers", 0) !== undefined;
  return (
    !waits && (object.metadata.finalizers ?? []).length === 0 && (object.metadata.deletionGracePeriodSeconds ?? 0) === 0
  );
}

async function admitDeletion(api: Api, call: Call, stored: ApiObject, options: JsonObject): Promise<void> {
  const [oldObject = stored] = await convert([stored], call.kind);
  const admission = { kind: "DeleteOptions", apiVersion: "meta.k8s.io/v1", ...options };
  const request = { call, operation: "DELETE" as const, object: undefined, oldObject, options: admission };
  await mutate(api, request);
  await validate(api, request);
}

/** Deletes an object, and returns it in the version of the call. `options`: a metav1.DeleteOptions. */
export async function deleteObject(api: Api, call: Call, options: JsonObject): Promise<Deletion> {
  const stored = api.store.get(call.kind.collection, storageKey(call));
  if (stored === undefined) throw notFound(call.kind, call.name);
  if (call.kind.collection === "/namespaces" && SYSTEM_NAMESPACES.has(call.name)) {
    throw forbidden(call.kind, call.name, "this namespace may not be deleted");
  }
  checkPreconditions(call, stored, options);
  await admitDeletion(api, call, stored, options);
  const current = api.store.get(call.kind.collection, storageKey(call));
  if (current === undefined) throw notFound(call.kind, call.name);
  checkPreconditions(call, current, options);
  if (current.metadata.uid !== stored.metadata.uid) throw conflict(call.kind, call.name, MODIFIED);
  const next = marked(api, call, current, options);
  const outcome = settle(api, call, next, current);
  const [object = outcome.object] = await convert([outcome.object], call.kind);
  return { ...outcome, object };
}

function settle(api: Api, call: Call, next: ApiObject, current: ApiObject): Deletion {
  const isRemoved = mayGo(call, next);
  if (call.dryRun) return { object: next, isRemoved };
  // An object that is removed at once never got a deletion mark.
  if (isRemoved) return { object: commitRemoval(api, call, "delete", current), isRemoved };
  if (isEqual(next, current)) return { object: current, isRemoved };
  return { object: commit(api, call, "delete", next), isRemoved };
}
