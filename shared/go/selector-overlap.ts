/** Tells whether two label selectors may select the same pod, by OpenKruise's rule of thumb. */
import type { LabelSelector, LabelSelectorRequirement } from "../api/kubernetes.ts";

/** OpenKruise's text for "any value"; a label with this real value is treated the same. */
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
  // Compat: a key that the other side does not mention counts as absent (vectors overlap-8-2, overlap-8-11).
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
