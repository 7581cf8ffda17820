/** Decides what is wrong with a request to recreate containers, before and after its pod is known. */
import type { ContainerRecreateRequestSpec, RecreatedContainer } from "../../api/container-recreate-request.ts";
import type { Container, Pod } from "../../api/kubernetes.ts";
import { SIDECAR_TERMINATED_CONDITION } from "../../api/names.ts";
import { isActive } from "../pod/is-matched.ts";

const LEAST_DEADLINE_SECONDS = 3;
const FAILURE_POLICIES: readonly string[] = ["", "Fail", "Ignore"];

/** Undefined when nothing is; OpenKruise's words else. */
export function requestProblem(spec: ContainerRecreateRequestSpec): string | undefined {
  const { podName, containers, activeDeadlineSeconds, strategy = {} } = spec;
  const { failurePolicy = "", terminationGracePeriodSeconds, unreadyGracePeriodSeconds } = strategy;
  if (!podName) return "podName can not be empty";
  if (!containers?.length) return "containers list can not be null";
  if ((activeDeadlineSeconds ?? LEAST_DEADLINE_SECONDS) < LEAST_DEADLINE_SECONDS) {
    return `activeDeadlineSeconds can not be less than ${LEAST_DEADLINE_SECONDS}s`;
  }
  if (isNegative(terminationGracePeriodSeconds)) return "terminationGracePeriodSeconds must be non-negative integer";
  if (isNegative(unreadyGracePeriodSeconds)) return "unreadyGracePeriodSeconds must be non-negative integer";
  return FAILURE_POLICIES.includes(failurePolicy) ? undefined : `unknown failurePolicy ${failurePolicy}`;
}

/** Undefined when containers of the pod may be recreated. */
export function podProblem(pod: Pod): string | undefined {
  const isTerminating = (pod.status?.conditions ?? []).some(({ type }) => type === SIDECAR_TERMINATED_CONDITION);
  if (!isActive(pod) && !isTerminating) return "not allowed to recreate containers in an inactive Pod";
  return pod.spec.nodeName ? undefined : "not allowed to recreate containers in a pending Pod";
}

/** `given` is the container as it was sent, in which even an empty list of ports counts as set. */
export function containerProblem(given: Partial<RecreatedContainer>, earlier: readonly string[], pod: Pod) {
  const { name = "", preStop, ports, statusContext } = given;
  if (earlier.includes(name)) return `can not recreate ${name} multi times`;
  if (isSet(preStop) || isSet(ports) || isSet(statusContext)) {
    return "preStop, ports, statusContext in container are ready-only fields";
  }
  if (!podContainer(pod, name)) return `container ${name} not found in Pod`;
  const status = pod.status?.containerStatuses?.find((candidate) => candidate.name === name);
  if (!status) return `not found ${name} containerStatus in Pod Status`;
  if (status.containerID) return undefined;
  return `no containerID in ${name} containerStatus, maybe the container has not been initialized`;
}

export function podContainer({ spec }: Pod, name: string): Container | undefined {
  return [...(spec.initContainers ?? []), ...spec.containers].find((container) => container.name === name);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isNegative(value: number | undefined): boolean {
  return (value ?? 0) < 0;
}
