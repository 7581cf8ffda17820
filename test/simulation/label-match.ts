/** Matches labels with a selector. The rules are written here again, independently of the core, on purpose. */
import type { LabelSelector, LabelSelectorRequirement, Labels } from "../../shared/api/kubernetes.ts";

export function hasLabels(labels: Labels = {}, { matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((requirement) => meets(labels[requirement.key], requirement))
  );
}

/** `value`: the label's value; undefined: the label is missing. */
function meets(value: string | undefined, { operator, values = [] }: LabelSelectorRequirement): boolean {
  const isListed = value !== undefined && values.includes(value);
  if (operator === "In") return isListed;
  if (operator === "NotIn") return !isListed;
  if (operator === "Exists") return value !== undefined;
  if (operator === "DoesNotExist") return value === undefined;
  throw new Error(`nobody writes the operator ${operator} in this world`);
}
