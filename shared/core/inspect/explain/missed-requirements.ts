/** Decides which requirements of a selector labels miss, and how narrowly. */
import type { LabelSelector, LabelSelectorRequirement, Labels } from "../../../api/kubernetes.ts";
import { editDistance } from "../../../go/edit-distance.ts";
import { selectorMatches } from "../../../go/label-selector.ts";

export interface Miss {
  /** such as `app is web, wanted shop` */
  readonly text: string;
  /** a value that differs in a letter is nearer than one that has nothing in common with what is wanted (1), and that than none */
  readonly distance: number;
}

const ABSENT = 2;

/** In the order in which they are looked at: matchLabels, then matchExpressions. */
export function missedRequirements(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  labels: Labels = {},
): readonly Miss[] {
  const exact = Object.entries(matchLabels ?? {})
    .filter(([key, value]) => labels[key] !== value)
    .map(([key, value]) => miss(labels, key, value, [value]));
  const others = matchExpressions
    .filter((one) => selectorMatches({ matchExpressions: [one] }, labels) !== true)
    .map((one) => miss(labels, one.key, wantedText(one), one.operator === "In" ? (one.values ?? []) : []));
  return [...exact, ...others];
}

function wantedText({ operator, values }: LabelSelectorRequirement): string {
  return values?.length ? `${operator} ${values.join(", ")}` : operator;
}

function miss(labels: Labels, key: string, wanted: string, values: readonly string[]): Miss {
  const has = labels[key];
  const shown = has === undefined ? "absent" : has || '""';
  return { text: `${key} is ${shown}, wanted ${wanted}`, distance: distanceTo(has, values) };
}

function distanceTo(has: string | undefined, values: readonly string[]): number {
  if (has === undefined) return ABSENT;
  return Math.min(1, ...values.map((one) => editDistance(has, one) / Math.max(has.length, one.length, 1)));
}
