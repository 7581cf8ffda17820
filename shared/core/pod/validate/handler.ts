/** Decides whether probes and lifecycle hooks may be declared as they are. */
import type { Handler, HttpGetAction, Lifecycle, Probe } from "../../../api/container.ts";
import { type FieldError, forbidden, invalid, invalidEach, notSupported, required } from "../../../go/field-error.ts";
import { headerNameErrors } from "../../../go/label-name.ts";
import { numberOf, validateNonNegative } from "../../admission/integer.ts";
import { validatePortReference } from "./port.ts";

/** The termination grace period of the pod that is tried out, in seconds. */
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

/** A liveness or startup probe: one success is enough. */
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
