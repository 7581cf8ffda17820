/** Decides whether the way in which a set is updated and scaled may be configured as it is. */
import type { IntOrString } from "../../../api/kubernetes.ts";
import type { RollingUpdateStatefulSet, StatefulSetSpec } from "../../../api/stateful-set.ts";
import { atoiProblem } from "../../../go/atoi.ts";
import { type FieldError, invalid, invalidEach, quote, required } from "../../../go/field-error.ts";
import { scaleIntOrPercentLegacy } from "../../../go/int-or-percent.ts";
import { percentErrors } from "../../../go/label-name.ts";
import { numberOf, validateNonNegative } from "../../admission/integer.ts";
import { priorityProblem } from "../../sidecarset/validate/update-strategy.ts";
import { hasReadinessGate } from "../in-place/readiness.ts";

const MAX_MIN_READY_SECONDS = 300;
const FIELD = "spec.updateStrategy";
const ROLLING = `${FIELD}.rollingUpdate`;

export function validateSetStrategy(spec: StatefulSetSpec): readonly FieldError[] {
  const { type = "", rollingUpdate } = spec.updateStrategy ?? {};
  switch (type) {
    case "":
      return [required(FIELD)];
    case "OnDelete":
      return rollingUpdate ? [invalid(ROLLING, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")] : [];
    case "RollingUpdate":
      return rollingUpdate ? validateRollingUpdate(rollingUpdate, spec) : [];
    default:
      return [invalid(FIELD, spec.updateStrategy, "must be 'RollingUpdate' or 'OnDelete'")];
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

export function validateScaleStrategy(spec: StatefulSetSpec): readonly FieldError[] {
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
