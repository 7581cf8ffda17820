/** The frame around a recreation: the request's deadline, the pod's grace, its end and its removal. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestStatus,
  ContainerStatusSnapshot,
  RecreateCondition,
} from "../../api/container-recreate-request.ts";
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import {
  PRE_RECREATE_GRACE_CONDITION,
  RECREATE_ACTIVE_LABEL,
  RECREATE_BATCH_LABEL,
  RECREATE_MAX_UNAVAILABLE_ANNOTATION,
  RECREATE_POD_UID_LABEL,
  RECREATE_REQUEST_KIND,
  RECREATED_CONTAINERS_ANNOTATION,
  UNREADY_ACQUIRED,
} from "../../api/names.ts";
import { scaleIntOrPercent } from "../../go/int-or-percent.ts";
import { compareUtf8, sortedGoJson } from "../../go/json/go-json.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { inTurns } from "../../go/sequence.ts";
import type { ImageChange } from "../actions.ts";
import { type Holder, hasHoldGate, hold, release } from "../pod/unready-hold.ts";

/** Actions in this order; a pass may end after any of them. */
export type RequestAction =
  | { readonly kind: "AddFinalizer" | "RemoveFinalizer" | "Deactivate" | "DeleteRequest" }
  /** all conditions of the pod, as they are to be */
  | { readonly kind: "PatchPodConditions"; readonly conditions: readonly PodCondition[] }
  | { readonly kind: "PatchRequestStatus"; readonly status: ContainerRecreateRequestStatus };

export interface RequestStep {
  readonly actions: readonly RequestAction[];
  /** when time alone changes something, 0 for never */
  readonly requeueAfterSeconds: number;
}

/** Limit of the time without a pass: afterwards the request has failed. */
const RESPONSE_SECONDS = 60;
/** A watch may miss that a container is ready. */
const POLL_SECONDS = 3;
const GRACE_MESSAGE = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain";
const NOTHING: RequestStep = { actions: [], requeueAfterSeconds: 0 };

/** `pod`: any pod of that name, or undefined. `now`: RFC 3339, whole seconds, UTC. */
export function trackRequest(request: ContainerRecreateRequest, pod: Pod | undefined, now: string): RequestStep {
  const { metadata, status } = request;
  if (metadata?.deletionTimestamp || status?.completionTime) return finish(request, pod, now);
  if (!pod || pod.metadata?.deletionTimestamp || pod.metadata?.uid !== metadata?.labels?.[RECREATE_POD_UID_LABEL]) {
    return complete(request, "pod has gone", now);
  }
  return advance(request, pod, now);
}

function advance(request: ContainerRecreateRequest, pod: Pod, now: string): RequestStep {
  const age = secondsBetween(createdAt(request), now) ?? 0;
  const phase = request.status?.phase ?? "";
  const untilResponse = phase === "" ? RESPONSE_SECONDS - age : Number.POSITIVE_INFINITY;
  if (untilResponse <= 0) return complete(request, "daemon has not responded for a long time", now);
  const untilDeadline = (request.spec.activeDeadlineSeconds ?? Number.POSITIVE_INFINITY) - age;
  if (untilDeadline <= 0) return complete(request, "recreating has exceeded the activeDeadlineSeconds", now);
  const left = Math.min(untilResponse, untilDeadline);
  if (phase !== "Recreating") return { ...NOTHING, requeueAfterSeconds: Number.isFinite(left) ? left : 0 };
  return { actions: observe(request, pod, now), requeueAfterSeconds: Math.min(left, POLL_SECONDS) };
}

/** The creation time, or Go's zero time when it is unknown. */
function createdAt({ metadata }: ContainerRecreateRequest): string {
  return metadata?.creationTimestamp ?? "0001-01-01T00:00:00Z";
}

/** The recreation's progress by the pod, and whether the pod is held unready for it. */
function observe(request: ContainerRecreateRequest, pod: Pod, now: string): readonly RequestAction[] {
  const before = request.status ?? { phase: "" };
  const needsGrace = request.spec.strategy?.unreadyGracePeriodSeconds !== undefined && !graceBegan(request);
  const status = {
    ...before,
    ...snapshotOf(request, pod),
    ...(needsGrace ? { conditions: [...otherConditions(before), graceCondition(now)] } : {}),
  };
  const patch = sortedGoJson(status) === sortedGoJson(before) ? [] : [{ kind: "PatchRequestStatus", status } as const];
  return [...(needsGrace && hasHoldGate(pod) ? acquire(request, pod, now) : []), ...patch];
}

/** When the grace before a recreation began, RFC 3339. */
export function graceBegan({ status }: ContainerRecreateRequest): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === PRE_RECREATE_GRACE_CONDITION);
  return condition?.status === "True" ? condition.lastTransitionTime : undefined;
}

function otherConditions({ conditions }: ContainerRecreateRequestStatus): readonly RecreateCondition[] {
  return (conditions ?? []).filter(({ type }) => type !== PRE_RECREATE_GRACE_CONDITION);
}

function graceCondition(now: string): RecreateCondition {
  const type = PRE_RECREATE_GRACE_CONDITION;
  return { type, status: "True", reason: type, message: GRACE_MESSAGE, lastTransitionTime: now };
}

function acquire(request: ContainerRecreateRequest, pod: Pod, now: string): readonly RequestAction[] {
  const held = hold(pod, holderOf(request), now);
  const finalizer = hasFinalizer(request) ? [] : [{ kind: "AddFinalizer" } as const];
  return [...finalizer, ...conditionsPatch(pod, held)];
}

function conditionsPatch(before: Pod, after: Pod): readonly RequestAction[] {
  if (after === before) return [];
  return [{ kind: "PatchPodConditions", conditions: after.status?.conditions ?? [] }];
}

/** The requested containers that were started since the request; nothing rather than none. */
function snapshotOf(request: ContainerRecreateRequest, pod: Pod) {
  const created = createdAt(request);
  const snapshot = request.spec.containers.flatMap(({ name }): readonly ContainerStatusSnapshot[] => {
    const found = pod.status?.containerStatuses?.find((status) => status.name === name);
    const started = found?.state?.running?.startedAt;
    if (!found || !isRunning(found) || (secondsBetween(created, started ?? "") ?? -1) < 0) return [];
    const { ready = false, restartCount = 0, containerID } = found;
    return [{ name, ready, restartCount, ...(containerID ? { containerID } : {}) }];
  });
  return snapshot.length === 0 ? {} : { containerStatusSnapshot: snapshot };
}

function isRunning({ state }: { readonly state?: { readonly running?: unknown } }): boolean {
  return state?.running !== undefined;
}

function complete(request: ContainerRecreateRequest, message: string, now: string): RequestStep {
  const status = { ...request.status, phase: "Completed", completionTime: now, message } as const;
  return { actions: [{ kind: "PatchRequestStatus", status }], requeueAfterSeconds: 0 };
}

/** The actions after the end: first release the pod, then remove the label, then the request. */
function finish(request: ContainerRecreateRequest, pod: Pod | undefined, now: string): RequestStep {
  const freed = hasFinalizer(request) ? [...letGo(request, pod, now), { kind: "RemoveFinalizer" } as const] : [];
  const { metadata } = request;
  if (metadata?.deletionTimestamp) return { actions: freed, requeueAfterSeconds: 0 };
  if (Object.hasOwn(metadata?.labels ?? {}, RECREATE_ACTIVE_LABEL)) {
    return { actions: [...freed, { kind: "Deactivate" }], requeueAfterSeconds: 0 };
  }
  const left = secondsToLive(request, now);
  if (left === undefined) return { actions: freed, requeueAfterSeconds: 0 };
  if (left <= 0) return { actions: [...freed, { kind: "DeleteRequest" }], requeueAfterSeconds: 0 };
  return { actions: freed, requeueAfterSeconds: left };
}

function holderOf({ metadata }: ContainerRecreateRequest): Holder {
  return { userAgent: RECREATE_REQUEST_KIND, key: `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}` };
}

function letGo(request: ContainerRecreateRequest, pod: Pod | undefined, now: string): readonly RequestAction[] {
  if (!pod || pod.metadata?.deletionTimestamp || !hasHoldGate(pod)) return [];
  return conditionsPatch(pod, release(pod, holderOf(request), now));
}

function secondsToLive({ spec, status }: ContainerRecreateRequest, now: string): number | undefined {
  if (spec.ttlSecondsAfterFinished === undefined) return undefined;
  return spec.ttlSecondsAfterFinished - (secondsBetween(status?.completionTime ?? now, now) ?? 0);
}

function hasFinalizer({ metadata }: ContainerRecreateRequest): boolean {
  return (metadata?.finalizers ?? []).includes(UNREADY_ACQUIRED);
}

// A pod's record of recreated containers: by which request, and their images as first written.

interface RecreatedContainer {
  readonly request: string;
  readonly image: string;
  /** the container when its image was written; absent: unknown */
  readonly containerID?: string;
}

/** The key is the name of the container. */
export type Recreated = Readonly<Record<string, RecreatedContainer>>;

/** The record without empty entries. */
export function recreatedBy({ metadata }: Pod): Recreated {
  const said = jsonObjectOf(metadata?.annotations?.[RECREATED_CONTAINERS_ANNOTATION]) ?? {};
  const entries = Object.entries(said).flatMap(([name, entry]) => {
    if (!isJsonObject(entry)) return [];
    const { request, image, containerID } = entry;
    if (typeof request !== "string" || typeof image !== "string") return [];
    return [[name, { request, image, ...(typeof containerID === "string" ? { containerID } : {}) }] as const];
  });
  return Object.fromEntries(entries);
}

/** The annotation after a request has written images of the pod. */
export function withRecreated(pod: Pod, images: readonly ImageChange[], request: string) {
  const before = recreatedBy(pod);
  const news = images.map(({ container, from }) => {
    const { containerID } = pod.status?.containerStatuses?.find(({ name }) => name === container) ?? {};
    return [container, { request, image: before[container]?.image ?? from, ...(containerID ? { containerID } : {}) }];
  });
  return { [RECREATED_CONTAINERS_ANNOTATION]: sortedGoJson({ ...before, ...Object.fromEntries(news) }) };
}

// Tells which requests may recreate containers now: one per pod, and within the limit of each batch.

/** Requests that are created together all exist before the first one begins. */
const BATCH_SECONDS = 2;

export interface Waiting {
  readonly request: ContainerRecreateRequest;
  /** completes "It …" */
  readonly why: string;
  /** for a moment only */
  readonly isBrief: boolean;
}

export interface Choice {
  /**
   * Running requests first, then older ones, with namespaces in turns. If only the first ones have a place, a namespace
   * with many or endless requests leaves places for others.
   */
  readonly chosen: readonly ContainerRecreateRequest[];
  readonly waiting: readonly Waiting[];
}

/** The used places: uids of pods, and numbers by batch. */
interface Taken {
  readonly pods: Set<string>;
  readonly ofBatch: Map<string, number>;
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * Chooses among all requests, including finished ones. The order of a batch never changes, and finished requests stay
 * finished. A pass with an older list therefore chooses the same ones, so overlapping passes keep the limit without a
 * lock.
 */
export function chooseRequests(requests: readonly ContainerRecreateRequest[], now: string): Choice {
  const taken: Taken = { pods: new Set(), ofBatch: countOf(requests.filter(isStuck)), sizes: countOf(requests) };
  const chosen: ContainerRecreateRequest[] = [];
  const waiting: Waiting[] = [];
  for (const request of requests.filter(isUnfinished).sort(compareTurns)) {
    const held = heldBy(request, taken, now);
    if (held) {
      waiting.push({ request, ...held });
      continue;
    }
    chosen.push(request);
    taken.pods.add(podOf(request));
    const batch = batchOf(request);
    if (batch !== undefined) taken.ofBatch.set(batch, (taken.ofBatch.get(batch) ?? 0) + 1);
  }
  return { chosen: inTurns(chosen, ({ metadata }) => metadata?.namespace ?? ""), waiting };
}

function heldBy(request: ContainerRecreateRequest, taken: Taken, now: string): Omit<Waiting, "request"> | undefined {
  if (taken.pods.has(podOf(request))) return { why: "waits for another request for the same pod", isBrief: false };
  const batch = batchOf(request);
  if (batch === undefined) return undefined;
  if (!isGathered(request, now)) return { why: `waits for the rest of batch ${batch} to be made`, isBrief: true };
  const used = taken.ofBatch.get(batch) ?? 0;
  const limit = limitOf(request, taken.sizes.get(batch) ?? 1);
  if (used < limit) return undefined;
  return {
    why: `waits for its turn in batch ${batch}: at most ${limit} at once, ${used} under way or not back`,
    isBrief: false,
  };
}

function isUnfinished({ metadata, status }: ContainerRecreateRequest): boolean {
  return !status?.completionTime && !metadata?.deletionTimestamp;
}

/** True when the request ended before a stopped container was back: its pod may not serve. */
function isStuck({ status }: ContainerRecreateRequest): boolean {
  const states = status?.containerRecreateStates ?? [];
  return Boolean(status?.completionTime) && states.some(({ isKilled, phase }) => isKilled && phase !== "Succeeded");
}

function countOf(requests: readonly ContainerRecreateRequest[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const request of requests) {
    const batch = batchOf(request);
    if (batch !== undefined) counts.set(batch, (counts.get(batch) ?? 0) + 1);
  }
  return counts;
}

/** The pod's key. It has the namespace, because a request stored without its webhook may have any uid. */
function podOf({ metadata }: ContainerRecreateRequest): string {
  return `${metadata?.namespace} ${metadata?.labels?.[RECREATE_POD_UID_LABEL]}`;
}

/** Namespace and name of the batch; undefined: none. */
function batchOf({ metadata }: ContainerRecreateRequest): string | undefined {
  const name = metadata?.labels?.[RECREATE_BATCH_LABEL];
  return name ? `${metadata?.namespace ?? ""}/${name}` : undefined;
}

/** At least one: a batch that may not begin would never end. An unreadable limit also counts as one. */
function limitOf({ metadata }: ContainerRecreateRequest, size: number): number {
  const text = metadata?.annotations?.[RECREATE_MAX_UNAVAILABLE_ANNOTATION] ?? "1";
  const value = /^\d{1,9}$/.test(text) ? Number(text) : scaleIntOrPercent(text, size);
  return Math.max(1, value ?? 1);
}

function isGathered({ metadata, status }: ContainerRecreateRequest, now: string): boolean {
  if (status?.phase === "Recreating") return true;
  return (secondsBetween(metadata?.creationTimestamp ?? now, now) ?? 0) >= BATCH_SECONDS;
}

function compareTurns(a: ContainerRecreateRequest, b: ContainerRecreateRequest): number {
  return (
    Number(b.status?.phase === "Recreating") - Number(a.status?.phase === "Recreating") ||
    compareUtf8(a.metadata?.creationTimestamp ?? "", b.metadata?.creationTimestamp ?? "") ||
    compareUtf8(a.metadata?.name ?? "", b.metadata?.name ?? "")
  );
}
