/** How the sidecars of a job's pod end after its main containers are done. */
import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
import type { Container, KubernetesObject, Pod, PodCondition } from "../../api/kubernetes.ts";
import {
  IGNORE_EXIT_CODE_ENV,
  NODE_TYPE_LABEL,
  RECREATE_REQUEST_KIND,
  SIDECAR_TERMINATED_CONDITION,
  SIDECAR_TERMINATOR_EVENT,
  SIDECARSET_V1BETA1,
  TERMINATE_SIDECAR_ENV,
  TERMINATE_SIDECAR_WITH_IMAGE_ENV,
  VIRTUAL_KUBELET,
} from "../../api/names.ts";
import type { ImageChange } from "../actions.ts";

/** Actions in this order; a later pass decides the missed ones again. */
export type TerminationAction =
  | { readonly kind: "SwapImages"; readonly images: readonly ImageChange[] }
  | { readonly kind: "CreateRequest"; readonly request: ContainerRecreateRequest }
  /** The kubelet stops what still runs in a pod whose phase is final. */
  | { readonly kind: "FinishPod"; readonly phase: "Succeeded" | "Failed"; readonly condition: PodCondition }
  | { readonly kind: "RecordEvent"; readonly type: "Normal"; readonly reason: string; readonly message: string };

export interface TerminationView {
  /** undefined: there is none of that name */
  readonly node: KubernetesObject | undefined;
  /** true when the pod has a request, for any containers */
  readonly hasRequest: boolean;
  /** RFC 3339, whole seconds, UTC */
  readonly now: string;
}

export type TerminationPlan =
  | { readonly kind: "plan"; readonly actions: readonly TerminationAction[] }
  | { readonly kind: "refused"; readonly message: string };

/** Empty for a pod that does not wait for its sidecars. */
export function planTermination(pod: Pod, view: TerminationView): TerminationPlan {
  if (!isWaitingForSidecars(pod)) return { kind: "plan", actions: [] };
  const { node, hasRequest, now } = view;
  if (!node) return { kind: "refused", message: `nodes "${pod.spec.nodeName ?? ""}" not found` };
  const sidecars = jobSidecars(pod, node.metadata?.labels?.[NODE_TYPE_LABEL] === VIRTUAL_KUBELET);
  const ending = hasRequest ? [] : endByRequest(pod, sidecars.normal);
  const actions = [...endByImage(pod, sidecars.byImage), ...ending];
  if (!isIgnoringTime(pod, sidecars)) return { kind: "plan", actions };
  // Compat: one request for the pod, so a second group gets none; its phase ends it (vector ignore-waits-for-normal).
  const last = hasRequest ? [] : endByRequest(pod, sidecars.ignoringExitCode);
  return { kind: "plan", actions: [...actions, ...finishPod(pod, now), ...last] };
}

/** The name of the request, which is in the pod's namespace. */
export function terminationRequestName({ metadata }: Pod): string {
  return `sidecar-termination-${metadata?.uid ?? ""}`;
}

function isIgnoringTime(pod: Pod, { normal, ignoringExitCode, byImage }: JobSidecars): boolean {
  return ignoringExitCode.length > 0 && areTerminated(pod, [...normal, ...byImage]);
}

function endByImage(pod: Pod, names: readonly string[]): readonly TerminationAction[] {
  const left = unfinished(pod, names);
  return left.length === 0 ? [] : [...swapImages(pod, left), event(left, "in-place update")];
}

/** Skips containers that already have their ending image. */
function swapImages(pod: Pod, names: readonly string[]): readonly Extract<TerminationAction, { kind: "SwapImages" }>[] {
  const images = pod.spec.containers.flatMap((container, index): readonly ImageChange[] => {
    const to = endingImage(container);
    const { name, image: from = "" } = container;
    return names.includes(name) && to !== undefined && to !== from ? [{ index, container: name, from, to }] : [];
  });
  return images.length === 0 ? [] : [{ kind: "SwapImages", images }];
}

function endByRequest(pod: Pod, names: readonly string[]): readonly TerminationAction[] {
  const left = unfinished(pod, names);
  if (left.length === 0) return [];
  return [{ kind: "CreateRequest", request: requestFor(pod, [...left].sort()) }, event(left, "crr")];
}

function requestFor(pod: Pod, names: readonly string[]): ContainerRecreateRequest {
  const { name = "", namespace = "", uid = "" } = pod.metadata ?? {};
  const owner = { apiVersion: "v1", kind: "Pod", name, uid, controller: true, blockOwnerDeletion: true };
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: RECREATE_REQUEST_KIND,
    metadata: { namespace, name: terminationRequestName(pod), ownerReferences: [owner] },
    spec: {
      podName: name,
      containers: names.map((container) => ({ name: container })),
      strategy: { forceRecreate: true, failurePolicy: "Ignore" },
    },
  };
}

export interface EndingView extends Omit<TerminationView, "hasRequest"> {
  /** the phase of a pod may become final before its sidecars have stopped, whatever they say about exit codes */
  readonly isPhaseFirst: boolean;
}

export type EndingPlan =
  | {
      readonly kind: "plan";
      readonly actions: readonly Extract<TerminationAction, { kind: "SwapImages" | "FinishPod" }>[];
      /** sidecars that continue, because only their pod's phase could end them */
      readonly left: readonly string[];
    }
  | Extract<TerminationPlan, { kind: "refused" }>;

/**
 * The plan for nodes without a daemon that kills containers. A kubelet replaces a container whose image changes, even
 * in a completed pod, and then sees the end itself. A final phase written by a pass also stops everything, but tells
 * scheduler, volumes and Job too early. So only sidecars whose exit code must not count end that way, as in OpenKruise.
 */
export function planEnding(pod: Pod, { node, isPhaseFirst, now }: EndingView): EndingPlan {
  if (!isWaitingForSidecars(pod)) return { kind: "plan", actions: [], left: [] };
  if (!node) return { kind: "refused", message: `nodes "${pod.spec.nodeName ?? ""}" not found` };
  const isVirtual = node.metadata?.labels?.[NODE_TYPE_LABEL] === VIRTUAL_KUBELET;
  const { normal, ignoringExitCode, byImage } = jobSidecars(pod, isVirtual);
  const images = new Set(pod.spec.containers.filter(endingImage).map(({ name }) => name));
  const swapped = unfinished(pod, [...byImage, ...normal.filter((name) => images.has(name))]);
  const plain = unfinished(
    pod,
    normal.filter((name) => !images.has(name)),
  );
  const [left, byPhase] = isPhaseFirst ? [[], [...plain, ...ignoringExitCode]] : [plain, ignoringExitCode];
  const isTime = swapped.length === 0 && left.length === 0 && unfinished(pod, byPhase).length > 0;
  return { kind: "plan", actions: [...swapImages(pod, swapped), ...(isTime ? finishPod(pod, now) : [])], left };
}

/** Empty for a pod whose phase is already final. */
export function finishPod(pod: Pod, now: string): readonly Extract<TerminationAction, { kind: "FinishPod" }>[] {
  if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") return [];
  const phase = areSuccessful(pod, mainContainers(pod)) ? "Succeeded" : "Failed";
  const message = "Terminated by Sidecar Terminator";
  const condition = { type: SIDECAR_TERMINATED_CONDITION, status: "True", lastTransitionTime: now, message };
  return [{ kind: "FinishPod", phase, condition }];
}

function event(names: readonly string[], means: string): TerminationAction {
  const message = `Kruise SidecarTerminator is trying to terminate sidecar [${[...names].sort().join(" ")}] using ${means}`;
  return { kind: "RecordEvent", type: "Normal", reason: SIDECAR_TERMINATOR_EVENT, message };
}

// Which containers of a job's pod are sidecars that may end, and whether it is time.

/** Names of containers, by how each is ended. */
interface JobSidecars {
  /** ended by recreation: a completed pod does not restart them */
  readonly normal: readonly string[];
  /** as `normal`, but after the write of the pod's phase, because their exit code must not count */
  readonly ignoringExitCode: readonly string[];
  /** ended by an image that exits at once, when nothing can recreate a container */
  readonly byImage: readonly string[];
}

/** The pod's main containers are done, and a sidecar still keeps it running. */
export function isWaitingForSidecars(pod: Pod): boolean {
  if (pod.metadata?.deletionTimestamp || pod.status?.phase === "Pending") return false;
  return isJobDone(pod) && !areTerminated(pod, namesOf(pod));
}

const ENDING_VARIABLES = new Set([TERMINATE_SIDECAR_ENV, TERMINATE_SIDECAR_WITH_IMAGE_ENV, IGNORE_EXIT_CODE_ENV]);

/** The pod in the fields by which its end is decided on and written. */
export function projectEnding({ metadata = {}, spec, status }: Pod): Pod {
  const { namespace, name, uid, resourceVersion } = metadata;
  const containers = spec.containers.map(({ name: container, image, env = [] }) => ({
    name: container,
    ...(image === undefined ? {} : { image }),
    env: env.filter((one) => ENDING_VARIABLES.has(one.name)),
  }));
  return {
    metadata: { namespace, name, uid, resourceVersion } as NonNullable<Pod["metadata"]>,
    spec: {
      containers,
      ...(spec.restartPolicy === undefined ? {} : { restartPolicy: spec.restartPolicy }),
      ...(spec.nodeName === undefined ? {} : { nodeName: spec.nodeName }),
    },
    status: {
      ...(status?.phase === undefined ? {} : { phase: status.phase }),
      containerStatuses: status?.containerStatuses ?? [],
    },
  };
}

function isJobDone(pod: Pod): boolean {
  const { restartPolicy } = pod.spec;
  if (restartPolicy === "Never") return areTerminated(pod, mainContainers(pod));
  return restartPolicy === "OnFailure" && areSuccessful(pod, mainContainers(pod));
}

function namesOf({ spec }: Pod): readonly string[] {
  return spec.containers.map(({ name }) => name);
}

/** Compat: each kind of node knows its own way only; sidecars that ask for the other one stay (vector vk-normal-without-image-env-does-nothing). */
function jobSidecars({ spec }: Pod, isOnVirtualKubelet: boolean): JobSidecars {
  const names = (isWanted: (container: Container) => boolean) =>
    spec.containers.filter(isWanted).map(({ name }) => name);
  if (isOnVirtualKubelet) return { normal: [], ignoringExitCode: [], byImage: names(endsByImage) };
  return {
    normal: names((container) => isNormal(container) && !ignoresExitCode(container)),
    ignoringExitCode: names((container) => isNormal(container) && ignoresExitCode(container)),
    byImage: [],
  };
}

/** The image that ends a container, or undefined. */
function endingImage({ env }: Container): string | undefined {
  return env?.find(({ name }) => name === TERMINATE_SIDECAR_WITH_IMAGE_ENV)?.value || undefined;
}

function mainContainers({ spec }: Pod): readonly string[] {
  return spec.containers.filter((container) => !isSidecar(container)).map(({ name }) => name);
}

/** True if all named containers have ended. False while one of them has no status. */
export function areTerminated(pod: Pod, names: readonly string[]): boolean {
  return statusesOf(pod, names)?.every(({ state }) => state?.terminated !== undefined) ?? false;
}

/** Terminated, each with exit code 0. */
export function areSuccessful(pod: Pod, names: readonly string[]): boolean {
  return (
    statusesOf(pod, names)?.every(({ state }) => state?.terminated && (state.terminated.exitCode ?? 0) === 0) ?? false
  );
}

export function unfinished(pod: Pod, names: readonly string[]): readonly string[] {
  const done = new Set(
    (pod.status?.containerStatuses ?? []).flatMap(({ name, state }) => (state?.terminated ? [name] : [])),
  );
  return names.filter((name) => !done.has(name));
}

/** Undefined until every container has a status. */
function statusesOf(pod: Pod, names: readonly string[]) {
  const statuses = pod.status?.containerStatuses ?? [];
  if (statuses.length !== pod.spec.containers.length) return undefined;
  return statuses.filter(({ name }) => names.includes(name));
}

function isSidecar(container: Container): boolean {
  return isNormal(container) || endsByImage(container);
}

function isNormal(container: Container): boolean {
  return saysTrue(container, TERMINATE_SIDECAR_ENV);
}

function ignoresExitCode(container: Container): boolean {
  return saysTrue(container, IGNORE_EXIT_CODE_ENV);
}

function endsByImage({ env }: Container): boolean {
  return (env ?? []).some(({ name, value }) => name === TERMINATE_SIDECAR_WITH_IMAGE_ENV && Boolean(value));
}

function saysTrue({ env }: Container, variable: string): boolean {
  return (env ?? []).some(({ name, value }) => name === variable && value?.toLowerCase() === "true");
}
