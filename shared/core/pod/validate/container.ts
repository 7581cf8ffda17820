/** Decides whether Kubernetes would accept the containers of a pod. */
import type { ContainerDetails, ContainerRestartRule } from "../../../api/container.ts";
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notSupported,
  required,
} from "../../../go/field-error.ts";
import { dnsLabelErrors } from "../../../go/label-name.ts";
import { validateEnv, validateEnvFrom } from "./env.ts";
import { validateLifecycle, validateReadinessProbe, validateSingleSuccessProbe } from "./handler.ts";
import { validateHostPorts, validatePorts } from "./port.ts";
import { validatePullPolicy } from "./pull-policy.ts";
import { validateResizePolicy, validateResources } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";
import { type VolumeTable, validateVolumeDevices, validateVolumeMounts } from "./volume-mount.ts";

const MESSAGE_POLICIES = ["File", "FallbackToLogsOnError"];

function validateMessagePolicy(policy: string, field: string): readonly FieldError[] {
  if (policy === "") return [required(field)];
  return MESSAGE_POLICIES.includes(policy) ? [] : [notSupported(field, policy, MESSAGE_POLICIES)];
}

/** What holds for containers of every kind. */
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

/** What only containers that keep running may have. */
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

/** Containers that run side by side. */
export function validateContainers(
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

/** `containers` are the pod's other ones, whose names are taken. */
export function validateInitContainers(
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
      // Compat: they run one by one, and the reference reports each under the first one's path.
      ...validateHostPorts([container], field),
      ...validateInitContainer(container, member),
    ];
  });
}

/** What is asked of containers of pods, but not of pod templates. */
export function validateImages(containers: readonly ContainerDetails[], field: string): readonly FieldError[] {
  return containers.flatMap((container, index) => validateImagePadding(container, `${field}[${index}]`));
}

// Whether a container's own restart policy and its rules may be declared. Source: Kubernetes 1.36 validation.

const POLICIES = ["Always", "Never", "OnFailure"];
const ACTIONS = ["Restart", "RestartAllContainers"];
const OPERATORS = ["In", "NotIn"];
const MOST_RULES = 20;
const MOST_CODES = 255;

/**
 * Validates a container that is no init container. Compat: without rules a policy is refused, as OpenKruise refuses it (vector
 * container-rule-22); rules are newer than OpenKruise.
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
