/** Tells whether Kubernetes would accept probes and lifecycle hooks. */

import type { IntOrString } from "../../../api/kubernetes.ts";
import type {
  ContainerDetails,
  ContainerPort,
  Handler,
  HttpGetAction,
  Lifecycle,
  Probe,
} from "../../../api/pod-parts.ts";
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notSupported,
  required,
} from "../../../go/field-error.ts";
import { headerNameErrors, portNameErrors } from "../../../go/label-name.ts";
import { numberOf, validateNonNegative, validateRange } from "../../admission/integer.ts";

/** The termination grace period, in seconds, of the pod that the validation builds. */
const GRACE_PERIOD = 30;
const SCHEMES = ["HTTP", "HTTPS"];
const PROBE_ACTIONS = ["exec", "httpGet", "tcpSocket", "grpc"] as const;
const LIFECYCLE_ACTIONS = ["exec", "httpGet", "tcpSocket", "sleep"] as const;

type ActionName = keyof Handler;

function validateHttpGet(action: HttpGetAction, field: string): readonly FieldError[] {
  const { path = "", port, scheme = "", httpHeaders = [] } = action;
  return [
    ...(path === "" ? [required(`${field}.path`)] : []),
    ...validatePortReference(port, `${field}.port`),
    ...(SCHEMES.includes(scheme) ? [] : [notSupported(`${field}.scheme`, scheme, SCHEMES)]),
    ...httpHeaders.flatMap(({ name = "" }) => invalidEach(`${field}.httpHeaders`, name, headerNameErrors(name))),
  ];
}

function validateSleep(seconds: unknown, field: string): readonly FieldError[] {
  const duration = numberOf(seconds);
  const detail = `must be non-negative and less than terminationGracePeriodSeconds (${GRACE_PERIOD})`;
  return duration >= 0 && duration <= GRACE_PERIOD ? [] : [invalid(field, seconds ?? 0, detail)];
}

function validateAction(
  name: ActionName,
  { exec, httpGet, tcpSocket, grpc, sleep }: Handler,
  field: string,
): readonly FieldError[] {
  switch (name) {
    case "exec":
      return exec?.command?.length ? [] : [required(`${field}.command`)];
    case "httpGet":
      return validateHttpGet(httpGet ?? {}, field);
    case "tcpSocket":
      return validatePortReference(tcpSocket?.port, `${field}.port`);
    case "grpc":
      return validatePortReference(grpc?.port, `${field}.port`);
    case "sleep":
      return validateSleep(sleep?.seconds, field);
  }
}

function validateHandler(handler: Handler, names: readonly ActionName[], field: string): readonly FieldError[] {
  const [first, ...others] = names.filter((name) => handler[name] != null);
  if (first === undefined) return [required(field, "must specify a handler type")];
  return [
    ...validateAction(first, handler, `${field}.${first}`),
    ...others.map((name) => forbidden(`${field}.${name}`, "may not specify more than 1 handler type")),
  ];
}

function validateProbe(probe: Probe, field: string): readonly FieldError[] {
  const { terminationGracePeriodSeconds: grace } = probe;
  const counts = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const;
  const graceField = `${field}.terminationGracePeriodSeconds`;
  return [
    ...validateHandler(probe, PROBE_ACTIONS, field),
    ...counts.flatMap((count) => validateNonNegative(probe[count], `${field}.${count}`)),
    ...(grace != null && numberOf(grace) <= 0 ? [invalid(graceField, grace, "must be greater than 0")] : []),
  ];
}

/** Validates a liveness or startup probe, for which one success is enough. */
export function validateSingleSuccessProbe(probe: Probe | undefined, field: string): readonly FieldError[] {
  if (probe == null) return [];
  const { successThreshold = 0 } = probe;
  const isOne = numberOf(successThreshold) === 1;
  return [
    ...validateProbe(probe, field),
    ...(isOne ? [] : [invalid(`${field}.successThreshold`, successThreshold, "must be 1")]),
  ];
}

export function validateReadinessProbe(probe: Probe | undefined, field: string): readonly FieldError[] {
  if (probe == null) return [];
  const { terminationGracePeriodSeconds: grace } = probe;
  const graceField = `${field}.terminationGracePeriodSeconds`;
  return [
    ...validateProbe(probe, field),
    ...(grace == null ? [] : [invalid(graceField, grace, "must not be set for readinessProbes")]),
  ];
}

export function validateLifecycle(lifecycle: Lifecycle | undefined, field: string): readonly FieldError[] {
  return (["postStart", "preStop"] as const).flatMap((moment) => {
    const handler = lifecycle?.[moment];
    return handler == null ? [] : validateHandler(handler, LIFECYCLE_ACTIONS, `${field}.${moment}`);
  });
}

// Tells whether a container's ports are valid.

const PORT_RANGE: readonly [number, number] = [1, 65535];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];

/** Validates an action's port: a number, or the name of a container's port. */
function validatePortReference(port: IntOrString | undefined, field: string): readonly FieldError[] {
  return typeof port === "string"
    ? invalidEach(field, port, portNameErrors(port))
    : validateRange(port, field, PORT_RANGE);
}

function validateNames(ports: readonly ContainerPort[], field: string): readonly FieldError[] {
  const seen = new Set<string>();
  return ports.flatMap(({ name = "" }, index) => {
    if (name === "") return [];
    const member = `${field}[${index}].name`;
    const errors = portNameErrors(name);
    if (errors.length > 0) return invalidEach(member, name, errors);
    if (seen.has(name)) return [duplicate(member, name)];
    seen.add(name);
    return [];
  });
}

function validateProtocol(protocol: string, field: string): readonly FieldError[] {
  if (protocol === "") return [required(field)];
  return PROTOCOLS.includes(protocol) ? [] : [notSupported(field, protocol, PROTOCOLS)];
}

function validatePort({ containerPort, hostPort, protocol }: ContainerPort, field: string): readonly FieldError[] {
  return [
    ...(containerPort
      ? validateRange(containerPort, `${field}.containerPort`, PORT_RANGE)
      : [required(`${field}.containerPort`)]),
    ...(hostPort ? validateRange(hostPort, `${field}.hostPort`, PORT_RANGE) : []),
    ...validateProtocol(protocol ?? "", `${field}.protocol`),
  ];
}

export function validatePorts(ports: readonly ContainerPort[] | undefined, field: string): readonly FieldError[] {
  const given = ports ?? [];
  return [...validateNames(given, field), ...given.flatMap((port, index) => validatePort(port, `${field}[${index}]`))];
}

/** Validates host ports. The containers run at the same time, so no two may use the same port of the host. */
export function validateHostPorts(containers: readonly ContainerDetails[], field: string): readonly FieldError[] {
  const seen = new Set<string>();
  return containers.flatMap(({ ports }, container) =>
    (ports ?? []).flatMap(({ protocol = "", hostIP = "", hostPort }, port) => {
      if (!hostPort) return [];
      const wanted = `${protocol}/${hostIP}/${hostPort}`;
      if (seen.has(wanted)) return [duplicate(`${field}[${container}].ports[${port}].hostPort`, wanted)];
      seen.add(wanted);
      return [];
    }),
  );
}

// Tells whether a path may be used inside a volume or a host.

export function hasBacksteps(path: string): boolean {
  return path.split("/").includes("..");
}

export function validateNoBacksteps(path: string, field: string): readonly FieldError[] {
  return hasBacksteps(path) ? [invalid(field, path, "must not contain '..'")] : [];
}

/** Requires a relative path that never goes upwards. */
export function validateDescendingPath(path: string, field: string): readonly FieldError[] {
  const absolute = path.startsWith("/") ? [invalid(field, path, "must be a relative path")] : [];
  return [...absolute, ...validateNoBacksteps(path, field)];
}

/** Requires a relative path that never goes upwards. Names that start with two dots are reserved for the kubelet. */
export function validateNonReservedPath(path: string, field: string): readonly FieldError[] {
  const isReserved = path.startsWith("..") && !path.startsWith("../");
  const reserved = isReserved ? [invalid(field, path, "must not start with '..'")] : [];
  return [...validateDescendingPath(path, field), ...reserved];
}

/** Tells whether a text is an image pull policy. */
const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

export function validatePullPolicy(policy: string, field: string): readonly FieldError[] {
  if (policy === "") return [required(field)];
  return PULL_POLICIES.includes(policy) ? [] : [notSupported(field, policy, PULL_POLICIES)];
}
