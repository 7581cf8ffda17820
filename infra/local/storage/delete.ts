/** DELETE: at once, after a grace period, or after the last finalizer. */
import { mutate, validate } from "../admission/admission.ts";
import { convert } from "../admission/conversion.ts";
import type { Api, Call } from "./api.ts";
import { asText, at, isEqual, isObject, type JsonObject, textAt } from "./json.ts";
import { type ApiObject, storageKey, timestamp } from "./object.ts";
import { conflict, forbidden, MODIFIED, notFound } from "./status-error.ts";
import { commit, commitRemoval } from "./write.ts";

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

/** Seconds that the object may live on; 0: none. */
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

/** A namespace lives on until everything in it is gone. */
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

/** `options` is a metav1.DeleteOptions. Answers the object in the version of the call. */
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
  // An object that is removed at once was never marked.
  if (isRemoved) return { object: commitRemoval(api, call, "delete", current), isRemoved };
  if (isEqual(next, current)) return { object: current, isRemoved };
  return { object: commit(api, call, "delete", next), isRemoved };
}
