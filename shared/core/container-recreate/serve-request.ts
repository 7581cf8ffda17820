/** All actions for one request now: its bookkeeping, the pod's readiness, and the images. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestStatus,
  ContainerRecreateState,
  ContainerStatusSnapshot,
  RecreateCondition,
  RecreatedContainer,
} from "../../api/container-recreate-request.ts";
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { RECREATE_IMAGE_ANNOTATION, RECREATE_POD_UID_LABEL, RECREATE_TAKEN_UP_CONDITION } from "../../api/names.ts";
import { sortedGoJson } from "../../go/json/go-json.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import type { ImageChange } from "../actions.ts";
import { aliasOf, type ImageAlias } from "../pod/image-alias.ts";
import {
  graceBegan,
  type Recreated,
  type RequestAction,
  recreatedBy,
  trackRequest,
  withRecreated,
} from "./track-request.ts";

export type ServeAction =
  | RequestAction
  /** precedes the status that reports it */
  | ({ readonly kind: "PatchImages" } & Pick<RecreationPlan, "images" | "annotations">);

/** The request's pod is unknown. */
const UNADMITTED =
  "this request was stored without its webhook, so it names no pod by uid: register the webhook and create another one";
/** More than any pod has; a longer list costs each look seconds. */
const MOST_CONTAINERS = 1_000;

/** The actions for a request that may start, or that has ended. `pod`: the pod of that name, or undefined. */
export function serveRequest(
  request: ContainerRecreateRequest,
  pod: Pod | undefined,
  now: string,
): readonly ServeAction[] {
  const { metadata, status } = request;
  if (metadata?.deletionTimestamp || status?.completionTime) return trackRequest(request, pod, now).actions;
  if (!metadata?.labels?.[RECREATE_POD_UID_LABEL]) return statusAction(request, unserved(request, now, UNADMITTED));
  const { length } = request.spec.containers;
  if (length > MOST_CONTAINERS)
    return statusAction(
      request,
      unserved(request, now, `${length} containers are more than ${MOST_CONTAINERS}: make requests with fewer`),
    );
  const begun = takenUp({ ...request, status: withoutMessage(status) }, status?.phase ?? "", now);
  const { actions } = trackRequest(begun, pod, now);
  const observed = actions.flatMap((action) => (action.kind === "PatchRequestStatus" ? [action.status] : []))[0];
  const before = actions.filter(({ kind }) => kind !== "PatchRequestStatus");
  if (!pod || observed?.completionTime) return [...before, ...statusAction(request, observed ?? begun.status)];
  const plan = planRecreation({ ...begun, status: observed ?? begun.status }, pod, now);
  const { images, annotations } = plan;
  const patch = images.length === 0 ? [] : [{ kind: "PatchImages", images, annotations } as const];
  return [...before, ...patch, ...statusAction(request, plan.status)];
}

/** Empty when the status is the same in any order: API servers sort what they store. */
export function statusAction(
  { status }: ContainerRecreateRequest,
  wanted: ContainerRecreateRequestStatus,
): readonly RequestAction[] {
  return sortedGoJson(status ?? {}) === sortedGoJson(wanted) ? [] : [{ kind: "PatchRequestStatus", status: wanted }];
}

/** Drops the message that said why the request waited. */
function withoutMessage(status: ContainerRecreateRequestStatus | undefined): ContainerRecreateRequestStatus {
  const { message: _, ...rest } = status ?? {};
  return { ...rest, phase: "Recreating" };
}

/** Before anything was done. */
function unserved({ status }: ContainerRecreateRequest, now: string, message: string): ContainerRecreateRequestStatus {
  return { ...status, phase: "Completed", completionTime: now, message };
}

// The start of a request's deadline: OpenKruise's daemon begins at once, a pass at its first look.

/** A request that no pass served for this long, past its deadline, has expired. */
const LATEST_START_SECONDS = 3_600;

type Seen = ContainerRecreateRequest & { readonly status: ContainerRecreateRequestStatus };

/**
 * The request with the time of its first pass in the status, from which its deadline counts. Otherwise a deadline
 * shorter than the schedule would end it untried.
 */
function takenUp(request: Seen, phase: string, now: string): Seen {
  const { spec, status, metadata } = request;
  const deadline = spec.activeDeadlineSeconds;
  if (deadline === undefined) return request;
  const created = metadata?.creationTimestamp ?? now;
  const since = takenUpAt(status) ?? startNow(phase, deadline, secondsBetween(created, now) ?? 0, now);
  if (since === undefined) return request;
  const activeDeadlineSeconds = deadline + (secondsBetween(created, since) ?? 0);
  return { ...request, spec: { ...spec, activeDeadlineSeconds }, status: withTime(status, since) };
}

/** Undefined: it is not to begin any more, or began before that was written down. */
function startNow(phase: string, deadline: number, age: number, now: string): string | undefined {
  if (phase === "Recreating") return undefined;
  return phase === "Pending" || age < Math.max(deadline, LATEST_START_SECONDS) ? now : undefined;
}

function takenUpAt({ conditions }: ContainerRecreateRequestStatus): string | undefined {
  return conditions?.find(({ type }) => type === RECREATE_TAKEN_UP_CONDITION)?.lastTransitionTime;
}

function withTime(status: ContainerRecreateRequestStatus, since: string): ContainerRecreateRequestStatus {
  if (takenUpAt(status) !== undefined) return status;
  const condition: RecreateCondition = {
    type: RECREATE_TAKEN_UP_CONDITION,
    status: "True",
    reason: RECREATE_TAKEN_UP_CONDITION,
    message: "activeDeadlineSeconds count from here",
    lastTransitionTime: since,
  };
  return { ...status, conditions: [...(status.conditions ?? []), condition] };
}

// The effect of a starting request on its pod: which containers get their image in another spelling.

interface RecreationPlan {
  /** the status after the images are written */
  readonly status: ContainerRecreateRequestStatus;
  readonly images: readonly ImageChange[];
  /** the pod's record, written together with the images */
  readonly annotations: Readonly<Record<string, string>>;
}

type States = readonly ContainerRecreateState[];

/** `request`: already tracked, neither gone nor past its deadline, with the pod's current facts. */
export function planRecreation(request: ContainerRecreateRequest, pod: Pod, now: string): RecreationPlan {
  const before: ContainerRecreateRequestStatus = { ...request.status, phase: "Recreating" };
  const nothing = { images: [], annotations: {} };
  if (isInGrace(request, now)) return { status: before, ...nothing };
  const recreated = recreatedBy(pod);
  const states = statesNow(request, pod, recreated, now);
  const due = dueNow(request, states, pod);
  const aliases = new Map(due.map((name) => [name, aliasFor(request, pod, name, recreated)]));
  const judged = states.map((state) => failedWithout(state, aliases.get(state.name)));
  const images = isOver(request, judged) ? [] : changesOf(pod, aliases);
  const written = new Set(images.map(({ container }) => container));
  const after = judged.map((state) => (written.has(state.name) ? underWay(state) : state));
  const status = { ...before, containerRecreateStates: after };
  if (images.length === 0) return { status: completed(request, status, now), ...nothing };
  const uid = request.metadata?.uid ?? "";
  return { status, images, annotations: withRecreated(pod, images, uid) };
}

/** The pod is given time to leave its services. */
function isInGrace(request: ContainerRecreateRequest, now: string): boolean {
  const seconds = request.spec.strategy?.unreadyGracePeriodSeconds;
  if (seconds === undefined) return false;
  const began = graceBegan(request);
  return began === undefined || (secondsBetween(began, now) ?? 0) < seconds;
}

/** A container whose image this request has written is on its way, also while the old one is still seen. */
function statesNow(request: ContainerRecreateRequest, pod: Pod, recreated: Recreated, now: string): States {
  const uid = request.metadata?.uid ?? "";
  const earlier = request.status?.containerRecreateStates ?? [];
  const known = request.spec.containers.map(({ name }): ContainerRecreateState => {
    const state = earlier.find((candidate) => candidate.name === name) ?? { name, phase: "Pending" };
    return recreated[name]?.request === uid ? { ...state, isKilled: true } : state;
  });
  const status: ContainerRecreateRequestStatus = {
    ...request.status,
    phase: "Recreating",
    containerRecreateStates: known,
  };
  const isGoing = ({ name, id }: SeenContainer) =>
    recreated[name]?.request === uid && recreated[name].containerID === id;
  const seen = (pod.status?.containerStatuses ?? []).map(seenContainer);
  // A container that its kubelet must still stop says nothing about the next one.
  const judged = seen.map((one) => (isGoing(one) ? { ...one, state: "exited" as const } : one));
  return containerStates({ ...request, status }, judged, now).map((state) => {
    if (state.phase !== "Pending" || !state.isKilled) return state;
    const { message: _, ...rest } = state;
    return { ...rest, phase: "Recreating" };
  });
}

function seenContainer({ name, containerID = "", restartCount = 0, state }: ContainerStatus): SeenContainer {
  const startedAt = state?.running?.startedAt;
  return {
    name,
    id: containerID,
    restartCount,
    state: state?.running ? "running" : "exited",
    ...(startedAt ? { startedAt } : {}),
  };
}

/** All at once, or one after the other. A container without an observed state must be waited for. */
function dueNow({ spec }: ContainerRecreateRequest, states: States, { status }: Pod): readonly string[] {
  const seen = new Set((status?.containerStatuses ?? []).map(({ name }) => name));
  const turns = states.filter(({ name, phase, isKilled }) => phase === "Pending" && !isKilled && seen.has(name));
  const names = turns.map(({ name }) => name);
  if (!spec.strategy?.orderedRecreate) return names;
  return states.some(({ phase }) => phase === "Recreating") ? [] : names.slice(0, 1);
}

function aliasFor(request: ContainerRecreateRequest, pod: Pod, name: string, recreated: Recreated): ImageAlias {
  const container = pod.spec.containers.find((one) => one.name === name) ?? { name };
  const original = recreated[name]?.image;
  const isAsked = request.metadata?.annotations?.[RECREATE_IMAGE_ANNOTATION] === "original";
  if (isAsked && original !== undefined && original !== container.image) return { kind: "alias", image: original };
  return aliasOf(
    container,
    pod.status?.containerStatuses?.find((status) => status.name === name),
  );
}

function failedWithout(state: ContainerRecreateState, alias: ImageAlias | undefined): ContainerRecreateState {
  if (alias?.kind !== "none") return state;
  return { name: state.name, phase: "Failed", message: `${alias.why}; nothing was done` };
}

function underWay({ name }: ContainerRecreateState): ContainerRecreateState {
  return { name, phase: "Recreating", isKilled: true };
}

function changesOf(pod: Pod, aliases: ReadonlyMap<string, ImageAlias>): readonly ImageChange[] {
  return pod.spec.containers.flatMap(({ name, image: from = "" }, index): readonly ImageChange[] => {
    const alias = aliases.get(name);
    return alias?.kind === "alias" ? [{ index, container: name, from, to: alias.image }] : [];
  });
}

/** A failure ends a request that doesn't ignore it, before anything else is done. */
function isOver({ spec }: ContainerRecreateRequest, states: States): boolean {
  return spec.strategy?.failurePolicy !== "Ignore" && states.some(({ phase }) => phase === "Failed");
}

function completed(
  request: ContainerRecreateRequest,
  status: ContainerRecreateRequestStatus & { readonly containerRecreateStates: States },
  now: string,
): ContainerRecreateRequestStatus {
  const states = status.containerRecreateStates;
  const areDone = states.every(({ phase }) => phase === "Succeeded" || phase === "Failed");
  if (!areDone && !isOver(request, states)) return status;
  const failed = states.find(({ phase }) => phase === "Failed");
  const message = failed ? `container ${failed.name} was not recreated: ${failed.message ?? ""}` : "";
  return { ...status, phase: "Completed", completionTime: now, ...(message ? { message } : {}) };
}

// How far the recreation of each requested container has come.

/** The observed state of a container. */
export interface SeenContainer {
  readonly name: string;
  /** with the runtime's prefix, as in a container status */
  readonly id: string;
  /** exited: its process has ended and the next one is starting */
  readonly state: "running" | "exited" | "created" | "unknown";
  readonly restartCount: number;
  /** RFC 3339; absent while it doesn't run */
  readonly startedAt?: string;
}

/** One state for each requested container, in order; a final state stays. */
export function containerStates(
  request: ContainerRecreateRequest,
  seen: readonly SeenContainer[],
  now: string,
): readonly ContainerRecreateState[] {
  return request.spec.containers.map((container) => {
    const before = request.status?.containerRecreateStates?.find(({ name }) => name === container.name);
    if (before?.phase === "Succeeded" || before?.phase === "Failed") return before;
    const found = seen.find(({ name }) => name === container.name);
    const { name } = container;
    const killed = before?.isKilled ? { isKilled: true } : {};
    if (!found) return { name, ...killed, phase: "Pending", message: "not found container on Node" };
    return { name, ...killed, phase: phaseOf(request, container, { found, isKilled: before?.isKilled ?? false, now }) };
  });
}

interface Sight {
  readonly found: SeenContainer;
  readonly isKilled: boolean;
  readonly now: string;
}

function phaseOf(request: ContainerRecreateRequest, container: RecreatedContainer, { found, isKilled, now }: Sight) {
  if (found.state === "exited") return "Recreating";
  if (request.spec.strategy?.forceRecreate && !isKilled) return "Pending";
  if (!isAnother(container, found)) return "Pending";
  const snapshot = request.status?.containerStatusSnapshot?.find(({ name }) => name === container.name);
  return isUp(request, { found, snapshot, now }) ? "Succeeded" : "Recreating";
}

/** True when a different container runs than at the time of the request. */
function isAnother({ statusContext }: RecreatedContainer, { id, restartCount }: SeenContainer): boolean {
  if (!statusContext) return false;
  return statusContext.containerID !== id || restartCount > (statusContext.restartCount ?? 0);
}

function isUp(
  { spec }: ContainerRecreateRequest,
  { found, snapshot, now }: { found: SeenContainer; snapshot: ContainerStatusSnapshot | undefined; now: string },
): boolean {
  if (!snapshot?.ready || snapshot.containerID !== found.id) return false;
  const seconds = secondsBetween(found.startedAt ?? "", now) ?? 0;
  return seconds > (spec.strategy?.minStartedSeconds ?? 0);
}
