/** Pods that injection makes invalid, both OpenKruise's and the product's, which injects in the same way. */

/** Sentence → the API server's answer, or the webhook's in OpenKruise's words. */
const CLASSES: Readonly<Record<string, RegExp>> = {
  "two containers of a pod have the same host port": /hostPort: Duplicate value/,
  "a sidecar's host port is not its port, in the host's network": /hostPort: Invalid value.*must match `containerPort`/,
  "a launch priority is no number": /strconv\.(Atoi|ParseInt): parsing/,
  "an annotation to merge with is no JSON": /denied the request: Invalid JSON Document/,
  "no container is there to derive resources from": /no containers match the regex pattern/,
  "a sidecar sleeps longer before it stops than the pod has time": /preStop\.sleep: Invalid value/,
  "a sidecar restarts when it is resized, in a pod that never restarts":
    /resizePolicy: Invalid value: "RestartContainer"/,
  "a shared device is mounted already, or the other way round":
    /volumeDevices\[\d+\]\.name: Invalid value: "\w+": must (be unique|not already exist)/,
  "a device in a pod with a user namespace of its own": /volumeDevices: Forbidden: when `hostUsers` is false/,
  "sidecars need more than the pod's resources": /spec\.resources\.(requests|limits|containers)/,
  "a sidecar of Linux in a pod of Windows": /cannot be set for a windows pod/,
  "a shared mount propagates both ways, and the sidecar is not privileged":
    /Bidirectional mount propagation is available only/,
  "a sidecar and a container of the pod have the same name": /[cC]ontainers\[\d+\]\.name: Duplicate value/,
};

interface Refusal {
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] };
}

/** Returns the class of a refusal; undefined: a cause without a class, which is a bug. */
export function brokenByReference({ message = "", details }: Refusal): string | undefined {
  const causes = details?.causes?.map((one) => `${one.field}: ${one.message}`) ?? [message];
  const classes = causes.map((cause) => Object.entries(CLASSES).find(([, pattern]) => pattern.test(cause))?.[0]);
  return classes.includes(undefined) ? undefined : classes[0];
}
