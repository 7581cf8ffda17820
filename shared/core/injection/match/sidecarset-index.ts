/** The SidecarSets that may match a pod, found without reading the others. */
import type { LabelSelector, Labels } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { namespaceKeys } from "./matches.ts";

/** Built once per list of SidecarSets, read for every pod. */
export interface SidecarSetIndex {
  readonly byNamespace: ReadonlyMap<string, LabelIndex>;
  readonly clusterWide: LabelIndex;
  /** false: every SidecarSet gives new pods its current revision */
  readonly hasRevisions: boolean;
  /** false: no SidecarSet reads a pod's namespace */
  readonly hasNamespaceSelectors: boolean;
}

/** An index of SidecarSets by the terms of one requirement: a matching pod has one of the terms, and at most one. */
interface LabelIndex {
  /** label → SidecarSets that require it */
  readonly byKey: ReadonlyMap<string, KeyIndex>;
  /** nothing in the selector can be looked up */
  readonly unindexed: readonly Entry[];
}

interface KeyIndex {
  readonly byValue: ReadonlyMap<string, readonly Entry[]>;
  /** any value will do */
  readonly any: readonly Entry[];
}

interface KeyIndexToBe {
  readonly byValue: Map<string, Entry[]>;
  readonly any: Entry[];
}

interface Term {
  readonly key: string;
  /** undefined: any */
  readonly value?: string;
}

interface Entry {
  /** place by name */
  readonly rank: number;
  readonly sidecarSet: SidecarSet;
}

/** Labels hold no NUL. */
function textOf({ key, value }: Term): string {
  return value === undefined ? key : `${key}\0${value}`;
}

/** One list of terms for each requirement that the index supports. */
function lookups({ matchLabels, matchExpressions }: LabelSelector): readonly (readonly Term[])[] {
  const ofLabels = Object.entries(matchLabels ?? {}).map(([key, value]) => [{ key, value }]);
  const ofExpressions = (matchExpressions ?? []).flatMap(({ key, operator, values }) => {
    if (operator === "In") return [[...new Set(values ?? [])].map((value) => ({ key, value }))];
    return operator === "Exists" ? [[{ key }]] : [];
  });
  return [...ofLabels, ...ofExpressions];
}

/** A selector with an unknown operator refuses every pod, so every pod must meet it. */
function lookupsOf({ spec: { selector } }: SidecarSet): readonly (readonly Term[])[] {
  const isBroken = selector === undefined || typeof selectorMatches(selector, {}) !== "boolean";
  return isBroken ? [] : lookups(selector);
}

function countTerms(all: readonly (readonly (readonly Term[])[])[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of all.flat(2).map(textOf)) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** The requirement that the fewest SidecarSets share. */
function rarest(choices: readonly (readonly Term[])[], counts: ReadonlyMap<string, number>) {
  const cost = (terms: readonly Term[]) => terms.reduce((sum, term) => sum + (counts.get(textOf(term)) ?? 0), 0);
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
  const byKey = new Map<string, KeyIndexToBe>();
  const unindexed: Entry[] = [];
  for (const [index, entry] of entries.entries()) {
    const terms = rarest(choices[index] ?? [], counts);
    if (terms === undefined) unindexed.push(entry);
    else for (const term of terms) place(byKey, term, entry);
  }
  return { byKey, unindexed };
}

function place(byKey: Map<string, KeyIndexToBe>, { key, value }: Term, entry: Entry): void {
  const ofKey: KeyIndexToBe = byKey.get(key) ?? { byValue: new Map(), any: [] };
  byKey.set(key, ofKey);
  if (value === undefined) ofKey.any.push(entry);
  else append(ofKey.byValue, value, entry);
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

/** In the order of their names. */
function lookUp({ byKey, unindexed }: LabelIndex, labels: Labels): readonly Entry[] {
  const found = [...unindexed];
  for (const key in labels) {
    const ofKey = byKey.get(key);
    if (ofKey === undefined) continue;
    for (const entry of ofKey.any) found.push(entry);
    for (const entry of ofKey.byValue.get(labels[key] as string) ?? []) found.push(entry);
  }
  return found.length > 1 ? found.sort((one, other) => one.rank - other.rank) : found;
}

/**
 * All SidecarSets that may match the pod, and few others: first those for its namespace, then cluster-wide ones, each
 * sorted by name. The cost grows with the result, not with the number of SidecarSets.
 */
export function candidates(
  index: SidecarSetIndex,
  namespace: string,
  podLabels: Labels | undefined,
): readonly SidecarSet[] {
  const ofNamespace = index.byNamespace.get(namespace);
  const found = lookUp(index.clusterWide, podLabels ?? {});
  const all = ofNamespace ? [...lookUp(ofNamespace, podLabels ?? {}), ...found] : found;
  return all.map(({ sidecarSet }) => sidecarSet);
}
