/** Decides how the sidecars of a job's pod are ended once its main containers are done. */
import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
import type { KubernetesObject, Pod, PodCondition } from "../../api/kubernetes.ts";
import {
  NODE_TYPE_LABEL,
  RECREATE_REQUEST_KIND,
  SIDECAR_TERMINATED_CONDITION,
  SIDECAR_TERMINATOR_EVENT,
  SIDECARSET_V1BETA1,
  VIRTUAL_KUBELET,
} from "../../api/names.ts";
import type { ImageChange } from "../actions.ts";
import {
  areSuccessful,
  areTerminated,
  endingImage,
  isWaitingForSidecars,
  type JobSidecars,
  jobSidecars,
  mainContainers,
  unfinished,
} from "./job-sidecars.ts";

/** In this order; what was not reached is decided again. */
export type TerminationAction =
  | { readonly kind: "SwapImages"; readonly images: readonly ImageChange[] }
  | { readonly kind: "CreateRequest"; readonly request: ContainerRecreateRequest }
  /** The kubelet stops what still runs in a pod whose phase is final. */
  | { readonly kind: "FinishPod"; readonly phase: "Succeeded" | "Failed"; readonly condition: PodCondition }
  | { readonly kind: "RecordEvent"; readonly type: "Normal"; readonly reason: string; readonly message: string };

export interface TerminationView {
  /** undefined: there is none of that name */
  readonly node: KubernetesObject | undefined;
  /** whether the pod's request exists already, whatever it asks for */
  readonly hasRequest: boolean;
  /** RFC 3339, whole seconds, UTC */
  readonly now: string;
}

export type TerminationPlan =
  | { readonly kind: "plan"; readonly actions: readonly TerminationAction[] }
  | { readonly kind: "refused"; readonly message: string };

/** Nothing for a pod that isn't waiting for its sidecars. */
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

/** In the pod's namespace. */
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

/** Nothing for those that have theirs already. */
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
  /** the phase of a pod may be final before its sidecars have stopped, whatever they say about exit codes */
  readonly isPhaseFirst: boolean;
}

export type EndingPlan =
  | {
      readonly kind: "plan";
      readonly actions: readonly Extract<TerminationAction, { kind: "SwapImages" | "FinishPod" }>[];
      /** sidecars that run on, since nothing can end them but their pod's phase */
      readonly left: readonly string[];
    }
  | Extract<TerminationPlan, { kind: "refused" }>;

/**
 * The same where no daemon kills containers. A kubelet replaces a container whose image is another one, in a pod that is
 * done too, and sees by itself that all have ended. It also stops all that runs in a pod whose phase somebody else made
 * final; but then scheduler, volumes and the Job have been told that nothing runs any more. So that is for those that
 * OpenKruise ends so: whose exit code shall not count.
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

/** Nothing for a pod whose phase is final already. */
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
