/** Decides what a request that has its turn does to its pod now: which containers get their image in another way. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestStatus,
  ContainerRecreateState,
  ContainerStatusSnapshot,
  RecreatedContainer,
} from "../../api/container-recreate-request.ts";
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { RECREATE_IMAGE_ANNOTATION } from "../../api/names.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import type { ImageChange } from "../actions.ts";
import { aliasOf, type ImageAlias } from "../pod/image-alias.ts";
import { type Recreated, recreatedBy, withRecreated } from "./recreated-containers.ts";
import { graceBegan } from "./track-request.ts";

export interface RecreationPlan {
  /** as it is once the images are written */
  readonly status: ContainerRecreateRequestStatus;
  readonly images: readonly ImageChange[];
  /** what the pod remembers of it, written together with the images */
  readonly annotations: Readonly<Record<string, string>>;
}

type States = readonly ContainerRecreateState[];

/** `request` is tracked already: neither gone nor past its deadline, and its snapshot is as the pod is now. */
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
  // One that its kubelet has yet to stop says nothing of the next one.
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

/** All at once, or one after the other. One of which nothing is seen yet has to be waited for. */
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

/** What a container is seen to be right now. */
export interface SeenContainer {
  readonly name: string;
  /** with the runtime's prefix, as in a container status */
  readonly id: string;
  /** exited: its process is gone and the next one is on its way */
  readonly state: "running" | "exited" | "created" | "unknown";
  readonly restartCount: number;
  /** RFC 3339; absent while it doesn't run */
  readonly startedAt?: string;
}

/** One state for each requested container, in the request's order; one that has succeeded or failed stays so. */
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

/** Not the container that ran when the request was made. */
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
