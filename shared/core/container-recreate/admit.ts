/** The admission of a ContainerRecreateRequest: checks, defaults, and the pod's facts. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestSpec,
  RecreatedContainer,
  RecreateStrategy,
} from "../../api/container-recreate-request.ts";
import type { Container, KubernetesObject, Labels, Pod } from "../../api/kubernetes.ts";
import {
  NODE_TYPE_LABEL,
  RECREATE_ACTIVE_LABEL,
  RECREATE_NODE_NAME_LABEL,
  RECREATE_POD_UID_LABEL,
  RECREATE_REQUEST_KIND,
  SIDECAR_TERMINATED_CONDITION,
  SIDECARSET_GROUP,
  UNREADY_ACQUIRED,
  VIRTUAL_KUBELET,
} from "../../api/names.ts";
import type { ContainerDetails } from "../../api/pod-parts.ts";
import { goJson } from "../../go/json/go-json.ts";
import {
  CONTAINER_RECREATE_REQUEST,
  CONTAINER_RECREATE_REQUEST_V1ALPHA1,
} from "../../go/types/container-recreate-request.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../go/types/decode-go.ts";
import type { GoType } from "../../go/types/go-type.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { isActive } from "../pod/is-matched.ts";

/** The cluster state for the webhook; absent: no object of that name. */
export interface RecreateRequestView {
  readonly pod?: Pod | undefined;
  readonly node?: KubernetesObject | undefined;
  readonly gates: { readonly KruiseDaemon: boolean };
}

const TYPES: ReadonlyMap<string, GoType<ContainerRecreateRequest>> = new Map([
  ["v1beta1", CONTAINER_RECREATE_REQUEST],
  ["v1alpha1", CONTAINER_RECREATE_REQUEST_V1ALPHA1],
]);

function forbidden(message: string): Admission {
  return { kind: "denied", code: 403, reason: "Forbidden", message };
}

/** The pod that a new request names, and that must be known to decide on it. */
export function podWanted({ operation, object, namespace }: AdmissionRequest) {
  if (operation !== "CREATE") return undefined;
  const given = object as Partial<ContainerRecreateRequest> | null | undefined;
  const name: unknown = given?.spec?.podName;
  const own: unknown = object?.metadata?.namespace;
  if (typeof name !== "string" || name === "") return undefined;
  return { namespace: typeof own === "string" && own !== "" ? own : namespace || "default", name };
}

/**
 * The request with defaults and the pod's facts about its containers. Denies forbidden changes with 403, everything
 * else with 400, in OpenKruise's words. Source: OpenKruise ContainerRecreateRequestHandler.
 */
export function admitContainerRecreateRequest(request: AdmissionRequest, view: RecreateRequestView): Admission {
  if (!view.gates.KruiseDaemon) return forbidden("feature-gate KruiseDaemon is not enabled");
  const { operation, resource, object, oldObject } = request;
  const type = TYPES.get(resource.version);
  if (type === undefined) return badRequest(`unsupported version: ${resource.version}`);
  if (operation !== "CREATE" && operation !== "UPDATE") return { kind: "allowed" };
  const given = decode(object, resource.version, type);
  if (given.kind === "DecodeError") return badRequest(given.message);
  if (operation === "CREATE") return admitNew(given.value, object, view);
  const old = decode(oldObject, resource.version, type);
  return old.kind === "DecodeError" ? badRequest(old.message) : admitChange(given.value, old.value);
}

function decode(
  object: KubernetesObject | null | undefined,
  version: string,
  type: GoType<ContainerRecreateRequest>,
): Decoded<ContainerRecreateRequest> | DecodeError {
  if (!object) return { kind: "DecodeError", message: "there is no content to decode" };
  const wanted = { apiVersion: `${SIDECARSET_GROUP}/${version}`, kind: RECREATE_REQUEST_KIND };
  const { apiVersion = wanted.apiVersion, kind = wanted.kind } = object;
  if (apiVersion === wanted.apiVersion && kind === wanted.kind) return decodeGo(type, object);
  return { kind: "DecodeError", message: `the object is a ${kind} of ${apiVersion}, not of ${wanted.apiVersion}` };
}

function admitChange(after: ContainerRecreateRequest, before: ContainerRecreateRequest): Admission {
  if (goJson(after.spec) !== goJson(before.spec)) {
    return forbidden("spec of ContainerRecreateRequest is immutable");
  }
  const label = [RECREATE_POD_UID_LABEL, RECREATE_NODE_NAME_LABEL].find(
    (key) => (after.metadata?.labels?.[key] ?? "") !== (before.metadata?.labels?.[key] ?? ""),
  );
  if (label) return forbidden(`not allowed to update immutable label ${label}`);
  const [now, then] = [after, before].map(({ metadata }) => metadata?.annotations?.[UNREADY_ACQUIRED] ?? "");
  // An annotation in v1alpha1 only; in v1beta1 it is a finalizer.
  if (!after.apiVersion?.endsWith("/v1alpha1") || !then || now === then) return { kind: "allowed" };
  return forbidden(`not allowed to update immutable annotation ${UNREADY_ACQUIRED}`);
}

function admitNew(given: ContainerRecreateRequest, raw: unknown, view: RecreateRequestView): Admission {
  const problem = requestProblem(given.spec);
  if (problem) return badRequest(problem);
  const { pod, node } = view;
  if (!pod) return badRequest(`no found Pod named ${given.spec.podName}`);
  const { nodeName = "" } = pod.spec;
  const refused =
    podProblem(pod) ?? (node ? undefined : `failed to get Node ${nodeName}: nodes "${nodeName}" not found`);
  if (refused) return badRequest(refused);
  const rawContainers = (raw as ContainerRecreateRequest).spec.containers;
  const names = given.spec.containers.map(({ name }) => name);
  for (const [index, container] of rawContainers.entries()) {
    const wrong = containerProblem(container, names.slice(0, index), pod);
    if (wrong) return badRequest(wrong);
  }
  const wanted = withFacts(given, pod, node);
  return goJson(wanted) === goJson(given) ? { kind: "allowed" } : { kind: "allowed", object: wanted };
}

function withFacts(given: ContainerRecreateRequest, pod: Pod, node: KubernetesObject | undefined) {
  const labels: Labels = {
    ...given.metadata?.labels,
    [RECREATE_ACTIVE_LABEL]: "true",
    [RECREATE_NODE_NAME_LABEL]: pod.spec.nodeName ?? "",
    [RECREATE_POD_UID_LABEL]: pod.metadata?.uid ?? "",
    ...(node?.metadata?.labels?.[NODE_TYPE_LABEL] === VIRTUAL_KUBELET ? { [NODE_TYPE_LABEL]: VIRTUAL_KUBELET } : {}),
  };
  const containers = given.spec.containers.map((container) => withContext(container, pod));
  const strategy = withDefaults(given.spec.strategy ?? {}, pod);
  return { ...given, metadata: { ...given.metadata, labels }, spec: { ...given.spec, containers, strategy } };
}

function withDefaults(strategy: RecreateStrategy, { spec }: Pod): RecreateStrategy {
  const { terminationGracePeriodSeconds: grace = spec.terminationGracePeriodSeconds, failurePolicy } = strategy;
  return {
    ...strategy,
    failurePolicy: failurePolicy || "Fail",
    ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }),
  };
}

/** Compat: a preStop that only sleeps is copied as an empty one. */
function withContext({ name }: RecreatedContainer, pod: Pod): RecreatedContainer {
  const { lifecycle, ports } = (podContainer(pod, name) ?? {}) as Partial<ContainerDetails>;
  const status = pod.status?.containerStatuses?.find((candidate) => candidate.name === name);
  const statusContext = { containerID: status?.containerID ?? "", restartCount: status?.restartCount ?? 0 };
  if (!lifecycle?.preStop) return { name, statusContext };
  const { exec, httpGet, tcpSocket } = lifecycle.preStop;
  const preStop = { ...(exec ? { exec } : {}), ...(httpGet ? { httpGet } : {}), ...(tcpSocket ? { tcpSocket } : {}) };
  return { name, preStop, ...(httpGet && ports ? { ports } : {}), statusContext };
}

/** The faults of a request to recreate containers, before and after its pod is known. */
const LEAST_DEADLINE_SECONDS = 3;
const FAILURE_POLICIES: readonly string[] = ["", "Fail", "Ignore"];

/** Undefined when nothing is; OpenKruise's words else. */
function requestProblem(spec: ContainerRecreateRequestSpec): string | undefined {
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
function podProblem(pod: Pod): string | undefined {
  const isTerminating = (pod.status?.conditions ?? []).some(({ type }) => type === SIDECAR_TERMINATED_CONDITION);
  if (!isActive(pod) && !isTerminating) return "not allowed to recreate containers in an inactive Pod";
  return pod.spec.nodeName ? undefined : "not allowed to recreate containers in a pending Pod";
}

/** `given`: the container as sent, in which even an empty list of ports counts as set. */
function containerProblem(given: Partial<RecreatedContainer>, earlier: readonly string[], pod: Pod) {
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

function podContainer({ spec }: Pod, name: string): Container | undefined {
  return [...(spec.initContainers ?? []), ...spec.containers].find((container) => container.name === name);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isNegative(value: number | undefined): boolean {
  return (value ?? 0) < 0;
}
