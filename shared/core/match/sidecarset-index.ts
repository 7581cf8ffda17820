/** Decides which SidecarSets are worth matching against a pod, without looking at the others. */
import type { LabelSelector, Labels } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../lib/go-json.ts";
import { isEmptySelector, selectorMatches } from "../lib/label-selector.ts";
import { namespaceKeys } from "./namespace-keys.ts";

/** Built once per list of SidecarSets, read for every pod. */
export interface SidecarSetIndex {
  readonly byNamespace: ReadonlyMap<string, LabelIndex>;
  readonly clusterWide: LabelIndex;
  /** false: every one of them gives new pods its current revision */
  readonly hasRevisions: boolean;
  /** false: no pod's namespace has to be looked at */
  readonly hasNamespaceSelectors: boolean;
}

/** A SidecarSet stands under the terms of one requirement of its selector: no pod without one of them can match. */
interface LabelIndex {
  readonly byTerm: ReadonlyMap<string, readonly Entry[]>;
  /** nothing in the selector can be looked up */
  readonly unindexed: readonly Entry[];
}

interface Entry {
  /** place by name */
  readonly rank: number;
  readonly sidecarSet: SidecarSet;
}

/** Labels hold no NUL. */
function valueTerm(key: string, value: string): string {
  return `${key}\0${value}`;
}

/** One list of terms per requirement that can be looked up. */
function lookups({ matchLabels, matchExpressions }: LabelSelector): readonly (readonly string[])[] {
  const ofLabels = Object.entries(matchLabels ?? {}).map(([key, value]) => [valueTerm(key, value)]);
  const ofExpressions = (matchExpressions ?? []).flatMap(({ key, operator, values }) => {
    if (operator === "In") return [[...new Set(values ?? [])].map((value) => valueTerm(key, value))];
    return operator === "Exists" ? [[key]] : [];
  });
  return [...ofLabels, ...ofExpressions];
}

/** A selector with an unknown operator refuses every pod, so every pod must meet it. */
function lookupsOf({ spec: { selector } }: SidecarSet): readonly (readonly string[])[] {
  const isBroken = selector === undefined || typeof selectorMatches(selector, {}) !== "boolean";
  return isBroken ? [] : lookups(selector);
}

function countTerms(all: readonly (readonly (readonly string[])[])[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const term of all.flat(2)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}

/** The requirement that the fewest SidecarSets share. */
function rarest(choices: readonly (readonly string[])[], counts: ReadonlyMap<string, number>) {
  const cost = (terms: readonly string[]) => terms.reduce((sum, term) => sum + (counts.get(term) ?? 0), 0);
  return choices.toSorted((one, other) => cost(one) - cost(other))[0];
}

function append(lists: Map<string, Entry[]>, key: string, entry: Entry): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [entry]);
  else list.push(entry);
}

function indexByLabel(entries: readonly Entry[]): LabelIndex {
  const choices = entries.map(({ sidecarSet }) => lookupsOf(sidecarSet));
  const counts = countTerms(choices);
  const byTerm = new Map<string, Entry[]>();
  const unindexed: Entry[] = [];
  for (const [index, entry] of entries.entries()) {
    const terms = rarest(choices[index] ?? [], counts);
    if (terms === undefined) unindexed.push(entry);
    else for (const term of terms) append(byTerm, term, entry);
  }
  return { byTerm, unindexed };
}

function canMatch({ spec }: SidecarSet): boolean {
  return spec.selector !== undefined && spec.selector !== null && !isEmptySelector(spec.selector);
}

/** SidecarSets without a selector match nothing and are left out. */
export function indexSidecarSets(sidecarSets: readonly SidecarSet[]): SidecarSetIndex {
  const clusterWide: Entry[] = [];
  const byNamespace = new Map<string, Entry[]>();
  const byName = sidecarSets
    .filter(canMatch)
    .toSorted((one, other) => compareUtf8(one.metadata?.name ?? "", other.metadata?.name ?? ""));
  for (const [rank, sidecarSet] of byName.entries()) {
    const namespaces = namespaceKeys(sidecarSet);
    if (namespaces === undefined) clusterWide.push({ rank, sidecarSet });
    else for (const namespace of new Set(namespaces)) append(byNamespace, namespace, { rank, sidecarSet });
  }
  return {
    clusterWide: indexByLabel(clusterWide),
    byNamespace: new Map([...byNamespace].map(([namespace, entries]) => [namespace, indexByLabel(entries)])),
    hasRevisions: byName.some(({ spec }) => spec.injectionStrategy?.revision !== undefined),
    hasNamespaceSelectors: byName.some(({ spec }) => spec.namespaceSelector),
  };
}

function lookUp({ byTerm, unindexed }: LabelIndex, terms: readonly string[]): readonly SidecarSet[] {
  const found = new Set(unindexed);
  for (const term of terms) for (const entry of byTerm.get(term) ?? []) found.add(entry);
  return [...found].sort((one, other) => one.rank - other.rank).map(({ sidecarSet }) => sidecarSet);
}

/**
 * Every SidecarSet that may match such a pod, and few others: those that name its namespace, then the cluster-wide
 * ones, each part by name. The cost grows with the answer, not with the number of SidecarSets.
 */
export function candidates(
  index: SidecarSetIndex,
  namespace: string,
  podLabels: Labels | undefined,
): readonly SidecarSet[] {
  const terms = Object.entries(podLabels ?? {}).flatMap(([key, value]) => [key, valueTerm(key, value)]);
  const ofNamespace = index.byNamespace.get(namespace);
  return [...(ofNamespace ? lookUp(ofNamespace, terms) : []), ...lookUp(index.clusterWide, terms)];
}
