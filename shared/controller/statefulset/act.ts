/** Runs the requests of a pass over a set. Each write requires that its object is unchanged. */
import type { KubernetesObject, OwnerReference, Pod } from "../../api/kubernetes.ts";
import type { StatefulSet, StatefulSetStatus } from "../../api/stateful-set.ts";
import { isTerminating } from "../../core/statefulset/pods/pod-phase.ts";
import { adoptedOwners } from "../../core/statefulset/revisions.ts";
import type { FailureReason, Reply, Request } from "../../core/statefulset/step.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import { ifThere, isKubeError, KubeError } from "../../kube/error.ts";
import {
  CLAIMS,
  type Cluster,
  CONTROLLER_REVISIONS,
  type Patch,
  type PatchOptions,
  PODS,
  type Resource,
  STATEFUL_SETS,
  STORAGE_CLASSES,
} from "../../kube/port.ts";
import { timestamp } from "../loop/clock.ts";
import { recordEvent } from "../loop/event-feed.ts";
import { asCompared, type SetContext, type SetSnapshot } from "./observe.ts";

/** An object has changed since it was observed, or may have changed: only a new snapshot shows how to continue. */
export class OutdatedSnapshot extends Error {
  override readonly name = "OutdatedSnapshot";
}

/**
 * Answers the requests whose results the rest of the pass needs. @throws OutdatedSnapshot, and KubeError for trouble.
 */
export async function answer(context: SetContext, snapshot: SetSnapshot, request: Request): Promise<Reply> {
  try {
    const done = await carryOut(context, snapshot, request);
    const object = done !== undefined && isOfPod(request) ? asCompared(done as Pod) : done;
    return { kind: "ok", ...(object === undefined ? {} : { object }) };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return await replyTo(context, snapshot, request, error);
  }
}

function isOfPod({ kind }: Request): boolean {
  return kind.endsWith("Pod") || kind === "UpdatePodStatus";
}

async function replyTo(context: SetContext, snapshot: SetSnapshot, request: Request, error: KubeError): Promise<Reply> {
  // Nothing was sent, or all callers must wait: the next call would fail too.
  if (error.code === 429 || (error.code === 0 && error.isOutcomeKnown)) throw error;
  if (!error.isOutcomeKnown) throw isRead(request) ? error : new OutdatedSnapshot(error.message, { cause: error });
  const reason = reasonOf(request, error);
  if (reason === "AlreadyExists" && (await isOursMeanwhile(context, snapshot, request)))
    throw new OutdatedSnapshot(error.message);
  if (isMoved(request, reason)) throw new OutdatedSnapshot(error.message, { cause: error });
  return { kind: "failed", reason, message: error.message };
}

function isRead({ kind }: Request): boolean {
  return kind.startsWith("Get");
}

function isCreate({ kind }: Request): boolean {
  return kind.startsWith("Create");
}

function reasonOf(request: Request, { code }: KubeError): FailureReason {
  if (code === 404) return "NotFound";
  if (code === 409) return isCreate(request) ? "AlreadyExists" : "Conflict";
  return code === 422 ? "Invalid" : "Other";
}

/** True when the object changed since it was observed. A missing object that the pass expects goes to the pass. */
function isMoved({ kind }: Request, reason: FailureReason): boolean {
  if (reason === "Conflict") return true;
  if (kind === "CreateClaim") return reason === "AlreadyExists";
  const isExpected =
    kind.startsWith("Get") || kind.startsWith("Create") || kind === "AdoptPod" || kind === "ReleasePod";
  return reason === "NotFound" && !isExpected;
}

/** True if another pass was faster, so that the pod with this name belongs to the set. */
async function isOursMeanwhile({ cluster }: SetContext, snapshot: SetSnapshot, request: Request): Promise<boolean> {
  if (request.kind !== "CreatePod") return false;
  const { namespace = "", name = "" } = request.pod.metadata ?? {};
  const there = await ifThere(cluster.get<Pod>(PODS, { namespace, name }));
  const owners = there?.metadata?.ownerReferences ?? [];
  return !there || owners.some(({ uid }) => uid === snapshot.set.metadata?.uid);
}

async function carryOut(context: SetContext, snapshot: SetSnapshot, request: Request): Promise<unknown> {
  const { cluster, key } = context;
  const { namespace } = key;
  switch (request.kind) {
    case "GetSet":
      return await cluster.get<StatefulSet>(STATEFUL_SETS, key);
    case "GetPod":
      return await cluster.get(PODS, { namespace, name: request.name });
    case "GetClaim":
      return await cluster.get(CLAIMS, { namespace, name: request.name });
    case "GetRevision":
      return await cluster.get(CONTROLLER_REVISIONS, { namespace, name: request.name });
    case "GetStorageClass":
      return await cluster.get(STORAGE_CLASSES, { name: request.name });
    case "RecordEvent":
      return await recordOnce(context, snapshot, request);
    case "UpdateStatus":
      return await writeStatus(cluster, snapshot.set, request.status);
    default:
      return await write(context, request);
  }
}

type Write = Exclude<Request, { readonly kind: `Get${string}` | "RecordEvent" | "UpdateStatus" }>;

async function write({ cluster, tally }: SetContext, request: Write): Promise<unknown> {
  switch (request.kind) {
    case "CreateRevision":
      return await cluster.create(CONTROLLER_REVISIONS, request.revision);
    case "RenumberRevision":
      return await patched(cluster, CONTROLLER_REVISIONS, request.revision, { revision: request.number });
    case "AdoptRevision":
      return await adopt(cluster, CONTROLLER_REVISIONS, request.revision, request.owner);
    case "DeleteRevision":
      return await remove(cluster, CONTROLLER_REVISIONS, request.revision);
    case "AdoptPod":
      return await adopt(cluster, PODS, request.pod, request.owner);
    case "ReleasePod":
      return await release(cluster, request.pod, request.ownerUid);
    case "CreatePod":
      tally.created++;
      return await cluster.create(PODS, request.pod);
    case "DeletePod":
      // A terminating pod is deleted in every pass until it is gone. One call is enough.
      if (isTerminating(request.pod)) return undefined;
      tally.deleted++;
      return await remove(cluster, PODS, request.pod);
    case "UpdatePod":
      tally.updated++;
      return await change(cluster, PODS, request);
    case "UpdatePodStatus":
      return await change(cluster, PODS, request, { subresource: "status" });
    case "CreateClaim":
      tally.claims++;
      return await cluster.create(CLAIMS, request.claim);
    case "UpdateClaim":
      tally.claims++;
      return await change(cluster, CLAIMS, request);
    default:
      return request satisfies never;
  }
}

function keyOf({ metadata }: KubernetesObject) {
  return { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
}

function change(
  cluster: Cluster,
  resource: Resource,
  { before, after }: { readonly before: KubernetesObject; readonly after: KubernetesObject },
  options: PatchOptions = {},
): Promise<KubernetesObject> {
  return cluster.patch(resource, keyOf(after), changePatch(before, after), options);
}

function patched(cluster: Cluster, resource: Resource, object: KubernetesObject, members: object) {
  return cluster.patch(resource, keyOf(object), memberPatch(object, members));
}

function adopt(cluster: Cluster, resource: Resource, object: KubernetesObject, owner: OwnerReference) {
  return patched(cluster, resource, object, { metadata: { ownerReferences: adoptedOwners(object, owner) } });
}

function release(cluster: Cluster, pod: Pod, ownerUid: string) {
  const ownerReferences = (pod.metadata?.ownerReferences ?? []).filter(({ uid }) => uid !== ownerUid);
  return patched(cluster, PODS, pod, { metadata: { ownerReferences } });
}

async function remove(cluster: Cluster, resource: Resource, object: KubernetesObject): Promise<undefined> {
  const { uid, resourceVersion } = object.metadata ?? {};
  const conditions = { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) };
  await cluster.delete(resource, keyOf(object), conditions);
}

/** Writes the status. A null removes a member that no longer exists. */
function writeStatus(cluster: Cluster, set: StatefulSet, status: StatefulSetStatus): Promise<StatefulSet> {
  const { uid, resourceVersion } = set.metadata ?? {};
  const absent = Object.keys(set.status ?? {}).filter((key) => !(key in status));
  const cleared = Object.fromEntries(absent.map((key) => [key, null]));
  const body = { metadata: { uid, resourceVersion }, status: { ...cleared, ...status } };
  const patch: Patch = { type: "merge", body };
  return cluster.patch<StatefulSet>(STATEFUL_SETS, keyOf(set), patch, { subresource: "status" });
}

/** Records the same event once a pass; losing one changes nothing. */
async function recordOnce(
  { cluster, clock, recorded, key }: SetContext,
  { set }: SetSnapshot,
  { type, reason, message }: Extract<Request, { kind: "RecordEvent" }>,
): Promise<undefined> {
  const known = JSON.stringify([reason, message]);
  if (recorded.has(known)) return;
  recorded.add(known);
  const regarding = { kind: "StatefulSet", ...key, uid: set.metadata?.uid ?? "" } as const;
  const event = { kind: "RecordEvent", regarding, type, reason, message } as const;
  await recordEvent(cluster, event, timestamp(clock)).catch((error: unknown) => {
    if (!isKubeError(error)) throw error;
  });
}

// Makes a conditional patch from an object before and after: the difference, for exactly the observed object and state.

/** The patch. Lists are replaced as a whole, because the resourceVersion proves that nobody else wrote them. */
export function changePatch(before: KubernetesObject, after: KubernetesObject): Patch {
  const body = difference(before as JsonObject, after as JsonObject) as { readonly metadata?: JsonObject };
  const { uid, resourceVersion } = before.metadata ?? {};
  return { type: "merge", body: { ...body, metadata: { ...body.metadata, uid, resourceVersion } } };
}

/** A merge patch of some members. */
export function memberPatch({ metadata }: KubernetesObject, members: { readonly metadata?: JsonObject }): Patch {
  const { uid, resourceVersion } = metadata ?? {};
  return { type: "merge", body: { ...members, metadata: { ...members.metadata, uid, resourceVersion } } };
}

function difference(before: JsonObject, after: JsonObject): JsonObject {
  const changed = Object.keys(after).filter((key) => !isSame(before[key], after[key]));
  const gone = Object.keys(before).filter((key) => after[key] === undefined && before[key] !== undefined);
  return Object.fromEntries([
    ...changed.map((key) => [key, changeOf(before[key], after[key])] as const),
    ...gone.map((key) => [key, null] as const),
  ]);
}

function changeOf(before: unknown, after: unknown): unknown {
  return isJsonObject(before) && isJsonObject(after) ? difference(before, after) : after;
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
