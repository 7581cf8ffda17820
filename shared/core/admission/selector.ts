/** Tells whether a LabelSelector is valid in a SidecarSet. */
import type { LabelSelector, LabelSelectorRequirement, Labels } from "../../api/kubernetes.ts";
import { type FieldError, forbidden, invalid, invalidEach, quote, required } from "../../go/field-error.ts";
import { labelValueErrors, qualifiedNameErrors } from "../../go/label-name.ts";
import { isEmptySelector } from "../../go/label-selector.ts";

const WITH_VALUES: ReadonlySet<string> = new Set(["In", "NotIn"]);
const WITHOUT_VALUES: ReadonlySet<string> = new Set(["Exists", "DoesNotExist"]);

export function validateLabels(labels: Labels | undefined, field: string): readonly FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...invalidEach(field, key, qualifiedNameErrors(key)),
    ...invalidEach(field, value, labelValueErrors(value)),
  ]);
}

function validateOperator(requirement: LabelSelectorRequirement, field: string): readonly FieldError[] {
  const { operator, values = [] } = requirement;
  if (WITH_VALUES.has(operator)) {
    return values.length > 0
      ? []
      : [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")];
  }
  if (WITHOUT_VALUES.has(operator)) {
    return values.length === 0
      ? []
      : [forbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
  }
  return [invalid(`${field}.operator`, operator ?? "", "not a valid selector operator")];
}

function validateRequirement(requirement: LabelSelectorRequirement, field: string): readonly FieldError[] {
  const { key = "", values = [] } = requirement;
  return [
    ...validateOperator(requirement, field),
    ...invalidEach(`${field}.key`, key, qualifiedNameErrors(key)),
    ...values.flatMap((value, index) => invalidEach(`${field}.values[${index}]`, value, labelValueErrors(value))),
  ];
}

/** Source: apimachinery's ValidateLabelSelector. */
export function validateLabelSelector(selector: LabelSelector | undefined, field: string): readonly FieldError[] {
  return [
    ...validateLabels(selector?.matchLabels, `${field}.matchLabels`),
    ...(selector?.matchExpressions ?? []).flatMap((requirement, index) =>
      validateRequirement(requirement, `${field}.matchExpressions[${index}]`),
    ),
  ];
}

/** The same, and the selector must select something. A malformed one is reported twice, as in OpenKruise. */
export function validateSelector(selector: LabelSelector, field: string): readonly FieldError[] {
  const errors = validateLabelSelector(selector, field);
  const empty = isEmptySelector(selector)
    ? [invalid(field, selector, "empty selector is not valid for sidecarset.")]
    : [];
  const conversion = errors.length > 0 ? [invalid(`${field}.selector`, selector, "")] : [];
  return [...errors, ...empty, ...conversion];
}

function keyProblem(key: string): string | undefined {
  const errors = qualifiedNameErrors(key);
  return errors.length === 0 ? undefined : `key: Invalid value: ${quote(key)}: ${errors.join("; ")}`;
}

function valuesProblem({ operator, values = [] }: LabelSelectorRequirement): string | undefined {
  if (WITH_VALUES.has(operator) && values.length === 0) {
    return "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty";
  }
  if (WITHOUT_VALUES.has(operator) && values.length > 0) {
    const list = `[]string{${values.map(quote).join(", ")}}`;
    return `values: Invalid value: ${list}: values set must be empty for exists and does not exist`;
  }
  return undefined;
}

function valueProblems(key: string, values: readonly string[]): readonly string[] {
  return values.flatMap((value, index) => {
    const errors = labelValueErrors(value);
    const detail = `values[${index}][${key}]: Invalid value: ${quote(value)}: ${errors.join("; ")}`;
    return errors.length === 0 ? [] : [detail];
  });
}

function requirementProblem(requirement: LabelSelectorRequirement): string | undefined {
  const { key = "", operator = "", values = [] } = requirement;
  if (!WITH_VALUES.has(operator) && !WITHOUT_VALUES.has(operator)) {
    return `${quote(operator)} is not a valid label selector operator`;
  }
  const problems = [keyProblem(key), valuesProblem(requirement), ...valueProblems(key, values)];
  const texts = problems.filter((problem) => problem !== undefined);
  return texts.length > 1 ? `[${texts.join(", ")}]` : texts[0];
}

/** Why a selector cannot be evaluated, or undefined. Source: apimachinery's LabelSelectorAsSelector. */
export function selectorProblem(selector: LabelSelector): string | undefined {
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: "In",
    values: [value],
  }));
  const requirements = [...labels, ...(selector.matchExpressions ?? [])];
  return requirements.map(requirementProblem).find((problem) => problem !== undefined);
}
