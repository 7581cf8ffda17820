/** Finds whether a container fails, from the reason that its kubelet gives. All readers use this one table. */
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";

interface Meaning {
  /** kind of failure: the image cannot be pulled, the container ends repeatedly, or its configuration is invalid */
  readonly kind: "pull" | "crash" | "config" | "other";
  /**
   * soon: the kubelet starts it within moments, so it does not fail; perhaps: it failed once and the kubelet retries;
   * no: it fails again and again, or a retry changes nothing
   */
  readonly comesBack: "soon" | "perhaps" | "no";
}

/** The reasons why a container waits or ended. Source: kubelet, pkg/kubelet/images and kuberuntime; CRI runtimes. */
const REASONS = {
  Completed: { kind: "other", comesBack: "soon" },
  ContainerCannotRun: { kind: "config", comesBack: "perhaps" },
  ContainerCreating: { kind: "other", comesBack: "soon" },
  CrashLoopBackOff: { kind: "crash", comesBack: "no" },
  CreateContainerConfigError: { kind: "config", comesBack: "no" },
  CreateContainerError: { kind: "config", comesBack: "perhaps" },
  ErrImageNeverPull: { kind: "pull", comesBack: "no" },
  ErrImagePull: { kind: "pull", comesBack: "perhaps" },
  Error: { kind: "crash", comesBack: "perhaps" },
  ImageInspectError: { kind: "pull", comesBack: "perhaps" },
  ImagePullBackOff: { kind: "pull", comesBack: "no" },
  InvalidImageName: { kind: "pull", comesBack: "no" },
  OOMKilled: { kind: "crash", comesBack: "perhaps" },
  PodInitializing: { kind: "other", comesBack: "soon" },
  PostStartHookError: { kind: "crash", comesBack: "perhaps" },
  RegistryUnavailable: { kind: "pull", comesBack: "soon" },
  RunContainerError: { kind: "config", comesBack: "perhaps" },
  StartError: { kind: "config", comesBack: "perhaps" },
} as const satisfies Readonly<Record<string, Meaning>>;

export type ContainerReason = keyof typeof REASONS;

export const CONTAINER_REASONS: Readonly<Record<ContainerReason, Meaning>> = REASONS;

export interface ContainerFailure extends Meaning {
  readonly container: string;
  readonly reason: ContainerReason;
}

/** The first failing container, or the first one among `names`; undefined: none fails. */
export function containerFailure(pod: Pod, names?: ReadonlySet<string>): ContainerFailure | undefined {
  for (const status of statusesOf(pod)) {
    const failure = names?.has(status.name) === false ? undefined : failureIn(status);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/** True if a container of the pod fails and does not recover by itself. */
export function isBeyondHelp(pod: Pod): boolean {
  return statusesOf(pod).some((status) => failureIn(status)?.comesBack === "no");
}

function statusesOf(pod: Pod): readonly ContainerStatus[] {
  const { status } = pod;
  if (!isSpecSeen(pod)) return [];
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
}

/** False if the kubelet says that it has not seen the spec. The reason to wait is then about the image before. */
export function isSpecSeen({ metadata, status }: Pod): boolean {
  const { observedGeneration: seen } = status ?? {};
  return seen === undefined || seen >= (metadata?.generation ?? 0);
}

/** The failure of a container; undefined: it does not fail. An unknown reason is not a failure. */
function failureIn(status: ContainerStatus): ContainerFailure | undefined {
  const reason = waitingReasonOf(status);
  if (status.ready === true || reason === undefined || !isKnown(reason)) return undefined;
  const meaning = CONTAINER_REASONS[reason];
  return meaning.comesBack === "soon" ? undefined : { container: status.name, reason, ...meaning };
}

/** True when the reason says that the node is about to start the container. */
export function isStartedSoon(status: ContainerStatus): boolean {
  const reason = waitingReasonOf(status);
  return reason !== undefined && isKnown(reason) && CONTAINER_REASONS[reason].comesBack === "soon";
}

/** The reason why the container waits or ended. */
export function waitingReasonOf({ state }: ContainerStatus): string | undefined {
  return state?.waiting?.reason ?? state?.terminated?.reason;
}

/** The failure as text, such as `agent: ImagePullBackOff`. */
export function failureText({ container, reason }: ContainerFailure): string {
  return `${container}: ${reason}`;
}

function isKnown(reason: string): reason is ContainerReason {
  return Object.hasOwn(REASONS, reason);
}
