/** Decides how waiting pods with the same label are spread out over a rollout, as updateStrategy.scatterStrategy asks. */
import type { Pod } from "../../../api/kubernetes.ts";

export interface ScatterTerm {
  readonly key: string;
  /** `*` stands for every value the label has */
  readonly value: string;
}

/** How pods with and without a label alternate. */
interface Grouping {
  readonly groups: number;
  readonly matchedSize: number;
  readonly otherSize: number;
  /** pods without the label that go before the first group */
  readonly leading: number;
}

/** `waiting` in its order so far; `all` are the matched pods, whose proportions the spreading follows. */
export function scatter(waiting: readonly Pod[], all: readonly Pod[], terms: readonly ScatterTerm[]): readonly Pod[] {
  const expanded = expandTerms(terms, all);
  const ordered = expanded.length > 1 ? orderTerms(expanded, waiting) : expanded;
  return ordered.reduce((pods, term) => scatterBy(term, pods, all), waiting);
}

function expandTerms(terms: readonly ScatterTerm[], all: readonly Pod[]): readonly ScatterTerm[] {
  const expanded = terms.flatMap(({ key, value }) =>
    value === "*"
      ? all.filter((pod) => hasLabel(pod, key)).map((pod) => ({ key, value: labelOf(pod, key) }))
      : [{ key, value }],
  );
  return [...new Map(expanded.map((term) => [JSON.stringify([term.key, term.value]), term])).values()];
}

/** Terms that no waiting pod has are dropped, the most frequent one comes first. */
function orderTerms(terms: readonly ScatterTerm[], waiting: readonly Pod[]): readonly ScatterTerm[] {
  const counted = terms.map((term) => ({
    term,
    count: waiting.filter((pod) => hasLabel(pod, term.key) && labelOf(pod, term.key) === term.value).length,
  }));
  return counted
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .map(({ term }) => term);
}

/** The last pod with the label is kept for the very end. */
function scatterBy({ key, value }: ScatterTerm, waiting: readonly Pod[], all: readonly Pod[]): readonly Pod[] {
  const isMatch = (pod: Pod) => labelOf(pod, key) === value;
  const matched = waiting.filter(isMatch);
  const others = waiting.filter((pod) => !isMatch(pod));
  const last = matched.pop();
  if (last === undefined || matched.length === 0 || others.length <= 1) return waiting;
  const totalMatched = all.filter(isMatch).length;
  const total = { matched: totalMatched - 1, others: all.length - totalMatched };
  const grouping = groupByDensity(total, { matched: matched.length, others: others.length });
  return [...alternate(matched, others, grouping), last];
}

interface Counts {
  readonly matched: number;
  readonly others: number;
}

/** By the proportions among all pods, or among the waiting ones where those hold relatively more with the label. */
function groupByDensity(total: Counts, waiting: Counts): Grouping {
  if (ratio(total) >= ratio(waiting)) {
    return { ...groupSizes(waiting), groups: Math.min(waiting.matched, waiting.others), leading: 0 };
  }
  const sizes = groupSizes(total);
  const groups = Math.min(
    Math.floor(waiting.matched / sizes.matchedSize),
    Math.floor(waiting.others / sizes.otherSize),
  );
  return { ...sizes, groups, leading: waiting.others - groups * sizes.otherSize };
}

/** Compat: in 32-bit floats (upgrade-select, hand/scatter-with-updated-pods-density). */
function ratio({ matched, others }: Counts): number {
  return Math.fround(Math.fround(others) / Math.fround(matched));
}

function groupSizes({ matched, others }: Counts) {
  const groups = Math.min(matched, others);
  return { matchedSize: Math.round(matched / groups), otherSize: Math.round(others / groups) };
}

function alternate(matched: readonly Pod[], others: readonly Pod[], grouping: Grouping): readonly Pod[] {
  const { groups, matchedSize, otherSize, leading } = grouping;
  const result = others.slice(0, leading);
  for (let group = 0; group < groups; group++) {
    result.push(...matched.slice(group * matchedSize, (group + 1) * matchedSize));
    result.push(...others.slice(leading + group * otherSize, leading + (group + 1) * otherSize));
  }
  return [...result, ...matched.slice(groups * matchedSize), ...others.slice(leading + groups * otherSize)];
}

function hasLabel(pod: Pod, key: string): boolean {
  return Object.hasOwn(pod.metadata?.labels ?? {}, key);
}

/** A label that is missing is as good as an empty one. */
function labelOf(pod: Pod, key: string): string {
  return pod.metadata?.labels?.[key] ?? "";
}
