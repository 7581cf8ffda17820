/** Decides how a LabelSelector is said in CEL. */
import type { LabelSelector, LabelSelectorRequirement } from "../../../api/kubernetes.ts";
import { celText, celTexts } from "../../../go/json/cel-literal.ts";

/** Of the pod that is created. */
export const POD_LABELS = "object.metadata.labels";
export const NAMESPACE_LABELS = "namespaceObject.metadata.labels";

/** Terms that all have to hold. `labels` is the expression of a map that may be absent. Operators must be known ones. */
export function selectorTerms(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  labels: string,
): readonly string[] {
  const equalities = Object.entries(matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: "In",
    values: [value],
  }));
  return [...equalities, ...matchExpressions].map((requirement) => requirementTerm(requirement, labels));
}

function requirementTerm({ key, operator, values = [] }: LabelSelectorRequirement, labels: string): string {
  const has = `has(${labels}) && ${celText(key)} in ${labels}`;
  const isIn = `${has} && ${labels}[${celText(key)}] in ${celTexts(values)}`;
  switch (operator) {
    case "In":
      return isIn;
    case "NotIn":
      return `!(${isIn})`;
    case "Exists":
      return has;
    default:
      return `!(${has})`;
  }
}
