/** Tells whether labels match a LabelSelector that was not validated first, as in OpenKruise. */
import type { LabelSelector, LabelSelectorRequirement, Labels } from "../api/kubernetes.ts";
import { quote } from "./field-error.ts";

/** A selector that cannot be evaluated. `message` is OpenKruise's text. */
export interface SelectorError {
  readonly kind: "UnknownOperator";
  readonly message: string;
}

type Test = (labels: Labels, requirement: LabelSelectorRequirement) => boolean;

function hasLabel(labels: Labels, { key }: LabelSelectorRequirement): boolean {
  return Object.hasOwn(labels, key);
}

function isIn(labels: Labels, { key, values = [] }: LabelSelectorRequirement): boolean {
  const value = labels[key];
  return value !== undefined && values.includes(value);
}

const OPERATORS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["In", isIn],
  ["NotIn", (labels, requirement) => !isIn(labels, requirement)],
  ["Exists", hasLabel],
  ["DoesNotExist", (labels, requirement) => !hasLabel(labels, requirement)],
]);

/** True for a selector that is given and has no requirement: it matches everything. */
export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0;
}

/**
 * No selector matches nothing, an empty one everything. An unknown operator is an error with any labels. Source:
 * OpenKruise pkg/util, ValidatedLabelSelectorAsSelector.
 */
export function selectorMatches(
  selector: LabelSelector | undefined,
  labels: Labels | undefined,
): boolean | SelectorError {
  if (selector === undefined || selector === null) return false;
  const { matchLabels, matchExpressions } = selector;
  const unknown = matchExpressions?.find(({ operator }) => !OPERATORS.has(operator));
  if (unknown !== undefined) {
    const message = `${quote(unknown.operator ?? "")} is not a valid pod selector operator`;
    return { kind: "UnknownOperator", message };
  }
  for (const [key, value] of Object.entries(matchLabels ?? {})) if (labels?.[key] !== value) return false;
  return matchExpressions?.every((one) => OPERATORS.get(one.operator)?.(labels ?? {}, one)) ?? true;
}
