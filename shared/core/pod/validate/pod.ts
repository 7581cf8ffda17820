/** Checks whether Kubernetes would accept a pod with the SidecarSet's containers alone. */

import type { EnvVar } from "../../../api/kubernetes.ts";
import type {
  ContainerDetails,
  ContainerRestartRule,
  EnvFromSource,
  EnvVarSource,
  VolumeDetails,
} from "../../../api/pod-parts.ts";
import type { SidecarSetSpec } from "../../../api/sidecarset.ts";
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notSupported,
  required,
} from "../../../go/field-error.ts";
import { configKeyErrors, dnsLabelErrors, dnsSubdomainErrors, envNameErrors } from "../../../go/label-name.ts";
import { validateFieldReference, validateResourceReference } from "./field-reference.ts";
import {
  validateHostPorts,
  validateLifecycle,
  validateNoBacksteps,
  validatePorts,
  validatePullPolicy,
  validateReadinessProbe,
  validateSingleSuccessProbe,
} from "./handler.ts";
import { validateResizePolicy, validateResources } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";
import { validateVolumes } from "./volume.ts";
import { type VolumeTable, validateVolumeDevices, validateVolumeMounts } from "./volume-mount.ts";

/** A container for a SidecarSet without one, because a pod needs a container. */
const STAND_IN: ContainerDetails = {
  name: "test",
  image: "busybox",
  imagePullPolicy: "IfNotPresent",
  terminationMessagePolicy: "File",
};

/** Windows' host processes need the whole pod, and the host's network, which a SidecarSet cannot request. */
function validateHostProcesses(containers: readonly ContainerDetails[]): readonly FieldError[] {
  const hostProcesses = containers.filter(
    ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true,
  );
  if (hostProcesses.length === 0) return [];
  const isMixed = hostProcesses.length !== containers.length;
  const detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
  const network = "hostNetwork must be true if pod contains any hostProcess containers";
  return [...(isMixed ? [invalid("spec", "", detail)] : []), invalid("spec.hostNetwork", false, network)];
}

/** Validates containers and volumes. Source: Kubernetes 1.32, ValidatePodCreate. */
export function validatePod(spec: SidecarSetSpec): readonly FieldError[] {
  const given: readonly ContainerDetails[] = spec.containers ?? [];
  const containers = given.length > 0 ? given : [STAND_IN];
  const initContainers: readonly ContainerDetails[] = spec.initContainers ?? [];
  const volumes = validateVolumes((spec.volumes ?? []) as readonly VolumeDetails[], "spec.volumes");
  return [
    ...volumes.errors,
    ...validateContainers(containers, volumes.valid, "spec.containers"),
    ...validateInitContainers(initContainers, containers, volumes.valid, "spec.initContainers"),
    ...validateHostProcesses([...initContainers, ...containers]),
    ...validateImages(containers, "spec.containers"),
    ...validateImages(initContainers, "spec.initContainers"),
  ];
}

// Tells whether Kubernetes would accept the containers of a pod.

const MESSAGE_POLICIES = ["File", "FallbackToLogsOnError"];

function validateMessagePolicy(policy: string, field: string): readonly FieldError[] {
  if (policy === "") return [required(field)];
  return MESSAGE_POLICIES.includes(policy) ? [] : [notSupported(field, policy, MESSAGE_POLICIES)];
}

/** The rules for all kinds of containers. */
function validateCommon(container: ContainerDetails, volumes: VolumeTable, field: string): readonly FieldError[] {
  const { name = "", image = "" } = container;
  return [
    ...(name === "" ? [required(`${field}.name`)] : invalidEach(`${field}.name`, name, dnsLabelErrors(name))),
    ...(image === "" ? [required(`${field}.image`)] : []),
    ...validateMessagePolicy(container.terminationMessagePolicy ?? "", `${field}.terminationMessagePolicy`),
    ...validatePorts(container.ports, `${field}.ports`),
    ...validateEnv(container.env, `${field}.env`),
    ...validateEnvFrom(container.envFrom, `${field}.envFrom`),
    ...validateVolumeMounts(container, volumes, `${field}.volumeMounts`),
    ...validateVolumeDevices(container, volumes, `${field}.volumeDevices`),
    ...validatePullPolicy(container.imagePullPolicy ?? "", `${field}.imagePullPolicy`),
    ...validateResources(container.resources, `${field}.resources`),
    ...validateResizePolicy(container.resizePolicy, `${field}.resizePolicy`),
    ...validateSecurityContext(container.securityContext, `${field}.securityContext`),
  ];
}

/** The rules for fields that only running containers may have. */
function validateRunning(container: ContainerDetails, field: string): readonly FieldError[] {
  return [
    ...validateLifecycle(container.lifecycle, `${field}.lifecycle`),
    ...validateSingleSuccessProbe(container.livenessProbe, `${field}.livenessProbe`),
    ...validateReadinessProbe(container.readinessProbe, `${field}.readinessProbe`),
    ...validateSingleSuccessProbe(container.startupProbe, `${field}.startupProbe`),
  ];
}

function validateUniqueName(name: string, seen: Set<string>, field: string): readonly FieldError[] {
  if (seen.has(name)) return [duplicate(`${field}.name`, name)];
  seen.add(name);
  return [];
}

function validateImagePadding({ image = "" }: ContainerDetails, field: string): readonly FieldError[] {
  const isPadded = image !== image.trim();
  return isPadded ? [invalid(`${field}.image`, image, "must not have leading or trailing whitespace")] : [];
}

/** Validates containers that run at the same time. */
function validateContainers(
  containers: readonly ContainerDetails[],
  volumes: VolumeTable,
  field: string,
): readonly FieldError[] {
  const seen = new Set<string>();
  const errors = containers.flatMap((container, index) => {
    const member = `${field}[${index}]`;
    return [
      ...validateCommon(container, volumes, member),
      ...validateUniqueName(container.name ?? "", seen, member),
      ...validateRunning(container, member),
      ...validateRestart(container, member),
    ];
  });
  return [...errors, ...validateHostPorts(containers, field)];
}

function validateEnding(container: ContainerDetails, field: string): readonly FieldError[] {
  return (["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const).flatMap((member) =>
    container[member] == null
      ? []
      : [forbidden(`${field}.${member}`, "may not be set for init containers without restartPolicy=Always")],
  );
}

function validateInitContainer(container: ContainerDetails, field: string): readonly FieldError[] {
  const { restartPolicy, restartPolicyRules = [], resizePolicy = [] } = container;
  const isNative = restartPolicy === "Always";
  return [
    ...(restartPolicyRules.length > 0
      ? validateRestartRules(container, field)
      : restartPolicy == null || isNative
        ? []
        : [notSupported(`${field}.restartPolicy`, restartPolicy, ["Always"])]),
    ...(isNative ? validateRunning(container, field) : validateEnding(container, field)),
    ...(resizePolicy.length > 0 && !isNative
      ? [invalid(`${field}.resizePolicy`, resizePolicy, "must not be set for init containers")]
      : []),
  ];
}

/** Validates init containers. `containers`: the pod's other containers, whose names are taken. */
function validateInitContainers(
  initContainers: readonly ContainerDetails[],
  containers: readonly ContainerDetails[],
  volumes: VolumeTable,
  field: string,
): readonly FieldError[] {
  const seen = new Set(containers.map(({ name = "" }) => name));
  return initContainers.flatMap((container, index) => {
    const member = `${field}[${index}]`;
    const { name = "" } = container;
    return [
      ...validateCommon(container, volumes, member),
      ...(name === "" && !seen.has("") ? [] : validateUniqueName(name, seen, member)),
      // Compat: init containers run one by one, and the reference reports each under the path of the first.
      ...validateHostPorts([container], field),
      ...validateInitContainer(container, member),
    ];
  });
}

/** Validates images by rules that hold for pods and not for pod templates. */
function validateImages(containers: readonly ContainerDetails[], field: string): readonly FieldError[] {
  return containers.flatMap((container, index) => validateImagePadding(container, `${field}[${index}]`));
}

// Tells whether a container's own restart policy and its rules may be declared. Source: Kubernetes 1.36 validation.

const POLICIES = ["Always", "Never", "OnFailure"];
const ACTIONS = ["Restart", "RestartAllContainers"];
const OPERATORS = ["In", "NotIn"];
const MOST_RULES = 20;
const MOST_CODES = 255;

/**
 * Validates a container that is not an init container. Compat: refuses a policy without rules, as OpenKruise does
 * (vector container-rule-22); rules are newer than OpenKruise.
 */
function validateRestart(container: ContainerDetails, field: string): readonly FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container;
  if (rules.length === 0)
    return restartPolicy == null ? [] : [forbidden(`${field}.restartPolicy`, "may not be set for non-init containers")];
  return validateRestartRules(container, field);
}

/** Validates a container that has rules. */
function validateRestartRules(container: ContainerDetails, field: string): readonly FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container;
  return [
    ...(restartPolicy == null
      ? [required(`${field}.restartPolicy`, "must specify restartPolicy when restart rules are used")]
      : unless(POLICIES.includes(restartPolicy), () =>
          notSupported(`${field}.restartPolicy`, restartPolicy, POLICIES),
        )),
    ...unless(rules.length <= MOST_RULES, () => tooMany(`${field}.restartPolicyRules`, rules, MOST_RULES)),
    ...rules.flatMap((rule, index) => validateRule(rule, `${field}.restartPolicyRules[${index}]`)),
  ];
}

function validateRule({ action = "", exitCodes }: ContainerRestartRule, field: string): readonly FieldError[] {
  const { operator = "", values = [] } = exitCodes ?? {};
  return [
    ...unless(ACTIONS.includes(action), () => notSupported(`${field}.action`, action, ACTIONS)),
    ...(exitCodes == null
      ? [required(`${field}.exitCodes`, "must be specified")]
      : unless(OPERATORS.includes(operator), () => notSupported(`${field}.exitCodes.operator`, operator, OPERATORS))),
    ...unless(values.length <= MOST_CODES, () => tooMany(`${field}.exitCodes.values`, values, MOST_CODES)),
  ];
}

function tooMany(field: string, items: readonly unknown[], limit: number): FieldError {
  return invalid(field, items.length, `must have at most ${limit} items`);
}

function unless(isRight: boolean, error: () => FieldError): readonly FieldError[] {
  return isRight ? [] : [error()];
}

/** Tells whether Kubernetes would accept a container's environment. */
const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const MORE_THAN_ONE = "may not have more than one field specified at a time";

function validateKey(
  { name = "", key = "" }: { readonly name?: string; readonly key?: string },
  field: string,
): readonly FieldError[] {
  return [
    ...invalidEach(`${field}.name`, name, dnsSubdomainErrors(name)),
    ...(key === "" ? [required(`${field}.key`)] : invalidEach(`${field}.key`, key, configKeyErrors(key))),
  ];
}

function validateSources(source: EnvVarSource, field: string): readonly (readonly FieldError[])[] {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  const found: (readonly FieldError[])[] = [];
  if (fieldRef != null) found.push(validateFieldReference(fieldRef, `${field}.fieldRef`, FIELDS));
  if (resourceFieldRef != null) {
    found.push(validateResourceReference(resourceFieldRef, `${field}.resourceFieldRef`, false));
  }
  if (configMapKeyRef != null) found.push(validateKey(configMapKeyRef, `${field}.configMapKeyRef`));
  if (secretKeyRef != null) found.push(validateKey(secretKeyRef, `${field}.secretKeyRef`));
  if (fileKeyRef != null) found.push(validateFileKey(fileKeyRef, `${field}.fileKeyRef`));
  return found;
}

/** Source: Kubernetes 1.34, validateFileKeySelector. */
function validateFileKey(file: NonNullable<EnvVarSource["fileKeyRef"]>, field: string): readonly FieldError[] {
  const { key = "", volumeName = "", path = "" } = file;
  return [
    ...(key === "" ? [required(`${field}.key`)] : invalidEach(`${field}.key`, key, relaxedEnvNameErrors(key))),
    ...(volumeName === ""
      ? [required(`${field}.volumeName`)]
      : invalidEach(`${field}.volumeName`, volumeName, dnsLabelErrors(volumeName))),
    ...(path === "" ? [required(`${field}.path`)] : validateNoBacksteps(path, `${field}.path`)),
  ];
}

/** Errors of a name. Any printable ASCII is allowed, except for the sign that ends a name. */
function relaxedEnvNameErrors(name: string): readonly string[] {
  return /^[ -<>-~]+$/.test(name)
    ? []
    : ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

/** Kubernetes' rules since 1.32; OpenKruise refuses more. Compat: OpenKruise's sentence (vector container-rule-06). */
function variableNameErrors(name: string): readonly string[] {
  return relaxedEnvNameErrors(name).length === 0 ? [] : envNameErrors(name);
}

function countProblem(count: number, value: string): string | undefined {
  if (count === 0) {
    return "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
  }
  if (value !== "") return "may not be specified when `value` is not empty";
  return count > 1 ? MORE_THAN_ONE : undefined;
}

function validateValueFrom({ value = "", valueFrom }: EnvVar, field: string): readonly FieldError[] {
  if (valueFrom == null) return [];
  const sources = validateSources(valueFrom, field);
  const problem = countProblem(sources.length, value);
  return problem === undefined ? sources.flat() : [...sources.flat(), invalid(field, "", problem)];
}

function validateEnv(env: readonly EnvVar[] | undefined, field: string): readonly FieldError[] {
  return (env ?? []).flatMap((variable, index) => {
    const { name = "" } = variable;
    const member = `${field}[${index}].name`;
    return [
      ...(name === "" ? [required(member)] : invalidEach(member, name, variableNameErrors(name))),
      ...validateValueFrom(variable, `${field}[${index}].valueFrom`),
    ];
  });
}

/** Errors of a prefix. `prefix-` is the start of a name, so it may end with a dash. */
function sourceNameErrors(name: string): readonly string[] {
  return dnsSubdomainErrors(name.length > 1 && name.endsWith("-") ? `${name.slice(0, -2)}a` : name);
}

function validateSourceName(name: string, field: string): readonly FieldError[] {
  return name === "" ? [required(field)] : invalidEach(field, name, sourceNameErrors(name));
}

function validateEnvFromSource(
  { prefix = "", configMapRef, secretRef }: EnvFromSource,
  field: string,
  listField: string,
): readonly FieldError[] {
  const count = Number(configMapRef != null) + Number(secretRef != null);
  return [
    ...(prefix === "" ? [] : invalidEach(`${field}.prefix`, prefix, variableNameErrors(prefix))),
    ...(configMapRef == null ? [] : validateSourceName(configMapRef.name ?? "", `${field}.configMapRef.name`)),
    ...(secretRef == null ? [] : validateSourceName(secretRef.name ?? "", `${field}.secretRef.name`)),
    ...(count === 0 ? [invalid(listField, "", "must specify one of: `configMapRef` or `secretRef`")] : []),
    ...(count > 1 ? [invalid(listField, "", MORE_THAN_ONE)] : []),
  ];
}

function validateEnvFrom(sources: readonly EnvFromSource[] | undefined, field: string): readonly FieldError[] {
  return (sources ?? []).flatMap((source, index) => validateEnvFromSource(source, `${field}[${index}]`, field));
}
