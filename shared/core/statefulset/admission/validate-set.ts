/** Tells whether an Advanced StatefulSet may be stored. */
import type { IntOrString, ObjectMeta, PodSpec } from "../../../api/kubernetes.ts";
import type {
  PodTemplateSpec,
  RollingUpdateStatefulSet,
  StatefulSet,
  StatefulSetSpec,
} from "../../../api/stateful-set.ts";
import {
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notSupported,
  quote,
  required,
} from "../../../go/field-error.ts";
import { atoiProblem, scaleIntOrPercentLegacy } from "../../../go/int-or-percent.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { dnsLabelErrors, labelValueErrors, percentErrors, qualifiedNameErrors } from "../../../go/label-name.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { numberOf, validateNonNegative } from "../../admission/integer.ts";
import { validateAnnotations, validateObjectMeta } from "../../admission/object-meta.ts";
import { selectorProblem, validateLabelSelector, validateLabels } from "../../admission/selector.ts";
import { validateDescendingPath } from "../../pod/validate/handler.ts";
import { priorityProblem } from "../../sidecarset/validate/update-strategy.ts";
import { hasReadinessGate } from "../in-place/update-pod.ts";
import { rangeProblem } from "../pods/ordinals.ts";

/** Compat: the pod spec itself is not looked into (vector validate, no-containers). */
export function setErrors({ metadata, spec }: StatefulSet): readonly FieldError[] {
  return [
    ...setMetadataErrors(metadata),
    ...validatePolicy(spec),
    ...validateSetStrategy(spec),
    ...validateScaleStrategy(spec),
    ...validateRetention(spec),
    // Compat: reported of the spec as a whole (vector validate, reserve-negative).
    ...(spec.reserveOrdinals ?? []).flatMap((entry, index) => validateReserved(entry, index, spec)),
    ...validateReplicas(spec),
    ...validateSetSelector(spec),
    ...validateTemplate(spec),
  ];
}

function validatePolicy({ podManagementPolicy: policy = "" }: StatefulSetSpec): readonly FieldError[] {
  const field = "spec.podManagementPolicy";
  if (policy === "") return [required(field)];
  const isKnown = policy === "OrderedReady" || policy === "Parallel";
  return isKnown ? [] : [invalid(field, policy, "must be 'OrderedReady' or 'Parallel'")];
}

/** The reference crashes without (vector validate, partition-missing-panics, is of the same kind). */
export function validateReplicas({ replicas }: StatefulSetSpec): readonly FieldError[] {
  return replicas === undefined ? [required("spec.replicas")] : validateNonNegative(replicas, "spec.replicas");
}

export function validateRetention({
  persistentVolumeClaimRetentionPolicy: policy,
}: StatefulSetSpec): readonly FieldError[] {
  if (!policy) return [];
  return (["whenDeleted", "whenScaled"] as const).flatMap((member) => {
    const value = policy[member] ?? "";
    const field = `spec.persistentVolumeClaimRetentionPolicy.${member}`;
    return ["Retain", "Delete"].includes(value) ? [] : [notSupported(field, value, ["Retain", "Delete"])];
  });
}

function validateReserved(entry: IntOrString, index: number, { reserveOrdinals }: StatefulSetSpec) {
  const error = (problem: string) => invalid("spec", reserveOrdinals, `${index} th reserve ordinal ${problem}`);
  if (typeof entry === "number") return entry < 0 ? [error(`is negative: ${entry}`)] : [];
  const shape = /^\d+-\d+$/.test(entry) ? [] : [error(`is not a valid range: ${entry}`)];
  const problem = rangeProblem(entry);
  return problem === undefined ? shape : [...shape, error(`is invalid: ${entry}, err = ${problem}`)];
}

function validateSetSelector({ selector }: StatefulSetSpec): readonly FieldError[] {
  if (!selector) return [required("spec.selector")];
  const empty = isEmptySelector(selector)
    ? [invalid("spec.selector", selector, "empty selector is invalid for statefulset")]
    : [];
  return [...validateLabelSelector(selector, "spec.selector"), ...empty];
}

function validateTemplate({ selector, template }: StatefulSetSpec): readonly FieldError[] {
  const { metadata, spec } = template ?? {};
  const { restartPolicy = "", activeDeadlineSeconds } = { ...spec } as {
    readonly restartPolicy?: string;
    readonly activeDeadlineSeconds?: number;
  };
  const labels = [
    ...validateSelected(selector, metadata?.labels),
    ...validateLabels(metadata?.labels, "spec.template.labels"),
    ...validateAnnotations(metadata?.annotations, "spec.template.annotations"),
    ...templateAnnotationErrors(template ?? {}),
  ];
  const field = "spec.template.spec";
  const isUnreadable = selector && selectorProblem(selector) !== undefined;
  return [
    ...(isUnreadable ? [invalid("spec.selector", selector, "")] : labels),
    // A set without defaults has no restart policy (gate TemplateNoDefaults).
    ...(["", "Always"].includes(restartPolicy)
      ? []
      : [notSupported(`${field}.restartPolicy`, restartPolicy, ["Always"])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbidden(`${field}.activeDeadlineSeconds`, "activeDeadlineSeconds in StatefulSet is not Supported")]),
  ];
}

function validateSelected(
  selector: StatefulSetSpec["selector"],
  labels: Readonly<Record<string, string>> | undefined,
): readonly FieldError[] {
  const isSelected = selector && (isEmptySelector(selector) || selectorMatches(selector, labels) === true);
  const detail = "`selector` does not match template `labels`";
  return isSelected ? [] : [invalid("spec.template.metadata.labels", labels, detail)];
}

// Tells whether an Advanced StatefulSet may have the metadata that it has.

const STANDARD_FINALIZERS: ReadonlySet<string> = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

function setMetadataErrors(metadata: ObjectMeta | undefined): readonly FieldError[] {
  const { namespace = "", generateName = "", ...rest } = metadata ?? {};
  const prefix = generateName === "" ? [] : dnsLabelErrors(maskTrailingDash(generateName));
  return [
    ...invalidEach("metadata.generateName", generateName, prefix),
    ...validateObjectMeta(rest, "metadata", dnsLabelErrors),
    ...(namespace === ""
      ? [required("metadata.namespace")]
      : invalidEach("metadata.namespace", namespace, dnsLabelErrors(namespace))),
    ...finalizerErrors(metadata),
  ];
}

/** Something follows it. Source: apimachinery's maskTrailingDash. */
function maskTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith("-") ? `${prefix.slice(0, -2)}a` : prefix;
}

/** Source: Kubernetes validateKubeFinalizerName. */
export function finalizerErrors(metadata: ObjectMeta | undefined): readonly FieldError[] {
  const detail = "name is neither a standard finalizer name nor is it fully qualified";
  return (metadata?.finalizers ?? []).flatMap((finalizer, index) =>
    finalizer.includes("/") || STANDARD_FINALIZERS.has(finalizer)
      ? []
      : [invalid(`metadata.finalizers[${index}]`, finalizer, detail)],
  );
}

// Tells whether the way in which a set is updated and scaled may be configured as it is.

const MAX_MIN_READY_SECONDS = 300;
const STRATEGY = "spec.updateStrategy";
const ROLLING = `${STRATEGY}.rollingUpdate`;

function validateSetStrategy(spec: StatefulSetSpec): readonly FieldError[] {
  const { type = "", rollingUpdate } = spec.updateStrategy ?? {};
  switch (type) {
    case "":
      return [required(STRATEGY)];
    case "OnDelete":
      return rollingUpdate ? [invalid(ROLLING, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")] : [];
    case "RollingUpdate":
      return rollingUpdate ? validateRollingUpdate(rollingUpdate, spec) : [];
    default:
      return [invalid(STRATEGY, spec.updateStrategy, "must be 'RollingUpdate' or 'OnDelete'")];
  }
}

/** Partition and minReadySeconds have defaults; the reference crashes without (vector partition-missing-panics). */
function validateRollingUpdate(rolling: RollingUpdateStatefulSet, spec: StatefulSetSpec): readonly FieldError[] {
  const { partition, minReadySeconds, maxUnavailable } = rolling;
  const tooLong = `must be no more than ${MAX_MIN_READY_SECONDS} seconds`;
  return [
    ...(partition === undefined ? [required(`${ROLLING}.partition`)] : []),
    ...validateNonNegative(partition, `${ROLLING}.partition`),
    ...(minReadySeconds === undefined ? [required(`${ROLLING}.minReadySeconds`)] : []),
    ...validateNonNegative(minReadySeconds, `${ROLLING}.minReadySeconds`),
    ...(numberOf(minReadySeconds) > MAX_MIN_READY_SECONDS
      ? [invalid(`${ROLLING}.minReadySeconds`, minReadySeconds, tooLong)]
      : []),
    ...(maxUnavailable === undefined ? [required(`${ROLLING}.maxUnavailable`)] : []),
    ...validateMaxUnavailable(maxUnavailable, spec, `${ROLLING}.maxUnavailable`),
    ...validateUnordered(rolling, spec),
    ...validatePodUpdatePolicy(rolling, spec),
  ];
}

function validateScaleStrategy(spec: StatefulSetSpec): readonly FieldError[] {
  return validateMaxUnavailable(spec.scaleStrategy?.maxUnavailable, spec, "spec.scaleStrategy.maxUnavailable");
}

/** A set that keeps order takes one pod at a time, and wants that written as the number 1. */
function validateMaxUnavailable(
  value: IntOrString | undefined,
  { podManagementPolicy }: StatefulSetSpec,
  field: string,
): readonly FieldError[] {
  if (value === undefined) return [];
  const shape =
    typeof value === "string" ? invalidEach(field, value, percentErrors(value)) : validateNonNegative(value, field);
  const ordered = "can only work with Parallel PodManagementPolicyType";
  return [
    ...shape,
    ...validateAmount(value, field),
    ...(podManagementPolicy === "Parallel" || value === 1 ? [] : [invalid(field, value, ordered)]),
  ];
}

function validateAmount(value: IntOrString, field: string): readonly FieldError[] {
  const amount = scaleIntOrPercentLegacy(value, 1);
  if (amount === undefined) {
    const cause = `invalid value ${quote(String(value))}: ${atoiProblem(String(value).replaceAll("%", ""))}`;
    return [invalid(field, 0, `getValueFromIntOrPercent error: invalid value for IntOrString: ${cause}`)];
  }
  return amount < 1 ? [invalid(field, amount, "should not be less than 1")] : [];
}

function validateUnordered(rolling: RollingUpdateStatefulSet, spec: StatefulSetSpec): readonly FieldError[] {
  if (!rolling.unorderedUpdate) return [];
  const field = `${ROLLING}.unorderedUpdate`;
  const ordered = "unorderedUpdate can only work with Parallel PodManagementPolicyType";
  const problem = priorityProblem(rolling.unorderedUpdate.priorityStrategy);
  return [
    ...(spec.podManagementPolicy === "Parallel" ? [] : [required(field, ordered)]),
    ...(problem === undefined ? [] : [required(`${field}.priorityStrategy`, problem)]),
  ];
}

function validatePodUpdatePolicy(
  { podUpdatePolicy: policy = "" }: RollingUpdateStatefulSet,
  { template }: StatefulSetSpec,
): readonly FieldError[] {
  const field = `${ROLLING}.podUpdatePolicy`;
  switch (policy) {
    case "":
      return [required(field)];
    case "ReCreate":
      return [];
    case "InPlaceIfPossible":
    case "InPlaceOnly": {
      const spec = { containers: [], ...template?.spec };
      const detail = `must contains InPlaceUpdateReady when podUpdatePolicy is ${policy}`;
      return hasReadinessGate({ spec })
        ? []
        : [invalid("spec.template.spec.readinessGates", spec.readinessGates, detail)];
    }
    default:
      return [invalid(field, policy, "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'")];
  }
}

// Tells whether a pod template may carry the annotations that Kubernetes itself reads.

interface TemplateSpec extends Partial<PodSpec> {
  readonly ephemeralContainers?: readonly { readonly name?: string }[];
}

const ANNOTATIONS = "spec.template.annotations";
const MIRROR = "kubernetes.io/config.mirror";
const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";
const LOCAL = "localhost/";

/** Source: Kubernetes ValidatePodSpecificAnnotations; OpenKruise lets any cost of deletion pass. */
function templateAnnotationErrors({ metadata, spec }: PodTemplateSpec): readonly FieldError[] {
  return Object.entries(metadata?.annotations ?? {}).flatMap(([key, value]) => {
    if (key === TOLERATIONS) return tolerationErrors(value, ANNOTATIONS);
    if (key === MIRROR) return validateMirror(value, spec);
    if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER))
      return validateSeccomp(value, `${ANNOTATIONS}.${key}`);
    return key.startsWith(APP_ARMOR) ? validateAppArmor(key, value, spec) : [];
  });
}

function validateMirror(value: string, spec: PodSpec | undefined): readonly FieldError[] {
  const detail = "must set spec.nodeName if mirror pod annotation is set";
  return spec?.nodeName ? [] : [invalid(`${ANNOTATIONS}[${MIRROR}]`, value, detail)];
}

function validateSeccomp(profile: string, field: string): readonly FieldError[] {
  if (["runtime/default", "docker/default", "unconfined"].includes(profile)) return [];
  if (profile.startsWith(LOCAL)) return validateDescendingPath(profile.slice(LOCAL.length), field);
  return [invalid(field, profile, "must be a valid seccomp profile")];
}

function validateAppArmor(key: string, profile: string, spec: PodSpec | undefined): readonly FieldError[] {
  const name = key.slice(APP_ARMOR.length);
  const { initContainers, containers, ephemeralContainers } = { ...spec } as TemplateSpec;
  // Go has null for none.
  const lists = [initContainers ?? [], containers ?? [], ephemeralContainers ?? []];
  const isThere = lists.some((list) => list.some((one) => one.name === name));
  const isKnown = ["", "runtime/default", "unconfined"].includes(profile) || profile.startsWith(LOCAL);
  return [
    ...(isThere ? [] : [invalid(`${ANNOTATIONS}[${key}]`, name, "container not found")]),
    ...(isKnown
      ? []
      : [invalid(`${ANNOTATIONS}[${key}]`, profile, `invalid AppArmor profile name: ${quote(profile)}`)]),
  ];
}

// Tells whether a pod template may carry tolerations as an annotation, as Kubernetes once had them.

const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;

interface Toleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
  readonly hasSeconds: boolean;
}

/** Source: Kubernetes ValidateTolerationsInPodAnnotations. */
function tolerationErrors(text: string, field: string): readonly FieldError[] {
  if (text === "") return [];
  const list = jsonOf(text);
  if (list === null) return [];
  if (list === undefined) return [invalid(field, TOLERATIONS, "is no JSON")];
  if (!Array.isArray(list)) return [invalid(field, TOLERATIONS, notList(list))];
  const tolerations = list.map(readToleration);
  if (tolerations.includes(undefined)) return [invalid(field, TOLERATIONS, "has what is no toleration")];
  return tolerations.flatMap((one, index) => (one ? errorsOf(one, `${field}.${TOLERATIONS}[${index}]`) : []));
}

/** The error in the words of Go. */
function notList(value: unknown): string {
  const kind = typeof value === "boolean" ? "bool" : typeof value === "string" ? "string" : "number";
  const what = isJsonObject(value) ? "object" : kind;
  return `json: cannot unmarshal ${what} into Go value of type []core.Toleration`;
}

/** Go reads its members in any case. Undefined for an unreadable value. */
function readToleration(value: unknown): Toleration | undefined {
  if (value !== null && !isJsonObject(value)) return undefined;
  const members = new Map(Object.entries(value ?? {}).map(([name, member]) => [name.toLowerCase(), member ?? ""]));
  const [key, operator, text, effect] = ["key", "operator", "value", "effect"].map((name) => members.get(name) ?? "");
  const seconds = members.get("tolerationseconds") ?? "";
  if (typeof key !== "string" || typeof operator !== "string" || typeof text !== "string") return undefined;
  if (typeof effect !== "string" || (seconds !== "" && !Number.isInteger(seconds))) return undefined;
  return { key, operator, value: text, effect, hasSeconds: seconds !== "" };
}

function errorsOf({ key, operator, value, effect, hasSeconds }: Toleration, field: string): readonly FieldError[] {
  const matchesAll = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
  return [
    ...(key === "" ? [] : invalidEach(`${field}.key`, key, qualifiedNameErrors(key))),
    ...(key === "" && operator !== "Exists" ? [invalid(`${field}.operator`, operator, matchesAll)] : []),
    ...(hasSeconds && effect !== "NoExecute"
      ? [invalid(`${field}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")]
      : []),
    ...operatorErrors(operator, value, `${field}.operator`),
    ...(["", ...EFFECTS].includes(effect) ? [] : [notSupported(`${field}.effect`, effect, EFFECTS)]),
  ];
}

function operatorErrors(operator: string, value: string, field: string): readonly FieldError[] {
  if (operator === "Exists")
    return value === "" ? [] : [invalid(field, value, "value must be empty when `operator` is 'Exists'")];
  if (operator !== "" && operator !== "Equal") return [notSupported(field, operator, ["Equal", "Exists"])];
  const problems = labelValueErrors(value);
  return problems.length === 0 ? [] : [invalid(field, value, problems.join(";"))];
}
