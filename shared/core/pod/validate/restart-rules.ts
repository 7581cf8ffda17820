/** Decides whether a container's own restart policy and its rules may be declared. Source: Kubernetes 1.36 validation. */
import type { ContainerDetails, ContainerRestartRule } from "../../../api/container.ts";
import { type FieldError, forbidden, invalid, notSupported, required } from "../../../go/field-error.ts";

const POLICIES = ["Always", "Never", "OnFailure"];
const ACTIONS = ["Restart", "RestartAllContainers"];
const OPERATORS = ["In", "NotIn"];
const MOST_RULES = 20;
const MOST_CODES = 255;

/**
 * Validates a container that is no init container. Compat: without rules a policy is refused, as OpenKruise refuses it (vector
 * container-rule-22); rules are newer than OpenKruise.
 */
export function validateRestart(container: ContainerDetails, field: string): readonly FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container;
  if (rules.length === 0)
    return restartPolicy == null ? [] : [forbidden(`${field}.restartPolicy`, "may not be set for non-init containers")];
  return validateRestartRules(container, field);
}

/** Validates a container that has rules. */
export function validateRestartRules(container: ContainerDetails, field: string): readonly FieldError[] {
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
