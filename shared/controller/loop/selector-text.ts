/** A LabelSelector as the query parameter of a list: the API server selects, and less comes over the wire. */
import type { LabelSelector, LabelSelectorRequirement } from "../../api/kubernetes.ts";

const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** "" selects everything. undefined: the API server would refuse it, so the caller selects among everything itself. */
export function selectorText(selector: LabelSelector): string | undefined {
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) =>
    requirementText({ key, operator: "In", values: [value] }),
  );
  const parts = [...labels, ...(selector.matchExpressions ?? []).map(requirementText)];
  return parts.includes(undefined) ? undefined : parts.join(",");
}

function requirementText({ key, operator, values = [] }: LabelSelectorRequirement): string | undefined {
  if (!KEY.test(key) || !values.every((value) => VALUE.test(value))) return undefined;
  switch (operator) {
    case "In":
    case "NotIn":
      return values.length === 0 ? undefined : `${key} ${operator.toLowerCase()} (${values.join(",")})`;
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    default:
      return undefined;
  }
}
