/** Decides whether a container's ports may be declared as they are. */
import type { ContainerDetails, ContainerPort } from "../../../api/container.ts";
import type { IntOrString } from "../../../api/kubernetes.ts";
import { duplicate, type FieldError, invalidEach, notSupported, required } from "../../../go/field-error.ts";
import { portNameErrors } from "../../../go/label-name.ts";
import { validateRange } from "../../admission/integer.ts";

const PORT_RANGE: readonly [number, number] = [1, 65535];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];

/** An action's port: a number, or the name of a container's port. */
export function validatePortReference(port: IntOrString | undefined, field: string): readonly FieldError[] {
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

/** The containers run side by side: no two may want the same port of the host. */
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
