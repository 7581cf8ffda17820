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
 * True if the selector matches. No selector matches nothing, an empty one everything. An unknown operator is an error
 * with any labels. Source: OpenKruise pkg/util, ValidatedLabelSelectorAsSelector.
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

// Checks whether two label selectors may select the same pod, by OpenKruise's rule of thumb.

/** OpenKruise's text for "any value". A label with this real value is treated the same. */
const ANY_VALUE = "ALL";

type WantedValues = Map<string, readonly string[]>;

function addWanted(wanted: WantedValues, { key, operator, values }: LabelSelectorRequirement): void {
  if (operator === "Exists") wanted.set(key, [ANY_VALUE]);
  // Go's append of nothing to a missing entry leaves it missing.
  if (operator === "In" && values?.length) wanted.set(key, [...(wanted.get(key) ?? []), ...values]);
}

function wantedValues(selector: LabelSelector): WantedValues {
  const labels = Object.entries(selector.matchLabels ?? {});
  const wanted: WantedValues = new Map(labels.map(([key, value]) => [key, [value]]));
  for (const requirement of selector.matchExpressions ?? []) addWanted(wanted, requirement);
  return wanted;
}

type Exclusion = (wanted: readonly string[] | undefined, values: readonly string[]) => boolean;

const EXCLUSIONS: ReadonlyMap<string, Exclusion> = new Map<string, Exclusion>([
  [
    "In",
    (wanted, values) =>
      wanted !== undefined && !wanted.includes(ANY_VALUE) && !wanted.some((value) => values.includes(value)),
  ],
  ["NotIn", (wanted, values) => wanted?.every((value) => values.includes(value)) ?? false],
  // Go's append of no values to a missing entry leaves it missing.
  ["Exists", (wanted) => wanted === undefined],
  ["DoesNotExist", (wanted) => wanted !== undefined],
]);

function excludes(wanted: WantedValues, { key, operator, values }: LabelSelectorRequirement): boolean {
  return EXCLUSIONS.get(operator)?.(wanted.get(key), values ?? []) ?? false;
}

function areDisjoint(one: LabelSelector, other: LabelSelector): boolean {
  const wanted = wantedValues(one);
  const labels = Object.entries(other.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: "In",
    values: [value],
  }));
  return [...labels, ...(other.matchExpressions ?? [])].some((requirement) => excludes(wanted, requirement));
}

/** Symmetric. Source: OpenKruise pkg/util, IsSelectorOverlapping. */
export function selectorsOverlap(one: LabelSelector, other: LabelSelector): boolean {
  return !(areDisjoint(one, other) || areDisjoint(other, one));
}
