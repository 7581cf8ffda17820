/**
 * The current state of a PodDisruptionBudget, or of OpenKruise's PodUnavailableBudget: which pods it covers, and how
 * many more may go down.
 */
import type { KubernetesObject, LabelSelector, Labels, Pod } from "../../../../api/kubernetes.ts";
import {
  PUB_NO_PROTECTION_ANNOTATION,
  PUB_OPERATIONS_ANNOTATION,
  RELATED_PUB_ANNOTATION,
} from "../../../../api/names.ts";
import { selectorMatches } from "../../../../go/label-selector.ts";

export type BudgetKind = "PodDisruptionBudget" | "PodUnavailableBudget";

/** A budget as read. Its status is a counter that everything shares that takes pods down. */
export interface DisruptionBudget {
  readonly kind: BudgetKind;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** selector of pods; absent: no label selects pods */
  readonly selector?: LabelSelector;
  /** false: the controller has not seen the current spec, so the budget allows no pod to go down */
  readonly isObserved: boolean;
  /** number of further pods that may go down */
  readonly allowed: number;
  /** number of pods that the controller counts as up, and the required number */
  readonly healthy: number;
  readonly desired: number;
  /** which unready pods use no budget: all, or all while enough other pods are healthy */
  readonly unready: "always" | "ifHealthy";
  /** names of pods that the budget counts as going down, each with the start time, RFC3339 */
  readonly disrupted: ReadonlyMap<string, string>;
  /** the reason why the budget's pods are unknown, so that all pods of the namespace wait; completes "the budget …" */
  readonly unclear?: string;
}

/** Limit of pods going down: beyond it the eviction API allows none. */
const MOST_DISRUPTED = 2_000;

interface Stored extends KubernetesObject {
  readonly spec?: { readonly selector?: LabelSelector | null; readonly unhealthyPodEvictionPolicy?: string };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly disruptionsAllowed?: number;
    readonly unavailableAllowed?: number;
    readonly currentHealthy?: number;
    readonly desiredHealthy?: number;
    readonly currentAvailable?: number;
    readonly desiredAvailable?: number;
    readonly disruptedPods?: Readonly<Record<string, string>> | null;
    readonly unavailablePods?: Readonly<Record<string, string>> | null;
  };
}

/** The budget; undefined: it does not concern updates in place, or requires no pod. */
export function disruptionBudgetOf(kind: BudgetKind, object: KubernetesObject): DisruptionBudget | undefined {
  const { metadata = {}, spec = {}, status = {} } = object as Stored;
  const { namespace = "", name = "", uid = "", resourceVersion = "", generation = 0 } = metadata;
  const isObserved = (status.observedGeneration ?? 0) >= generation;
  const common = { kind, namespace, name, uid, resourceVersion, isObserved, ...selectorOf(spec) };
  if (kind === "PodDisruptionBudget") return { ...common, ...disruptionsOf(status, spec, isObserved) };
  const isAsked = protectsUpdates(metadata.annotations?.[PUB_OPERATIONS_ANNOTATION]);
  if (!isAsked || (isObserved && (status.desiredAvailable ?? 0) === 0)) return undefined;
  return { ...common, ...unavailabilityOf(status, isObserved) };
}

/** Limit of a selector's length: a thousand longer selectors would fill the memory of a pass. */
const MOST_CHARACTERS = 16 * 1024;

function selectorOf({ selector }: NonNullable<Stored["spec"]>): Pick<DisruptionBudget, "selector" | "unclear"> {
  if (!selector) return {};
  if (JSON.stringify(selector).length <= MOST_CHARACTERS) return { selector };
  return { unclear: `has a selector of more than ${MOST_CHARACTERS} characters` };
}

type Counts = Pick<DisruptionBudget, "allowed" | "healthy" | "desired" | "unready" | "disrupted">;

function disruptionsOf(status: NonNullable<Stored["status"]>, spec: Stored["spec"], isObserved: boolean): Counts {
  const disrupted = new Map(Object.entries(status.disruptedPods ?? {}));
  return {
    allowed: allowedOf(status.disruptionsAllowed, isObserved, disrupted.size),
    healthy: status.currentHealthy ?? 0,
    desired: status.desiredHealthy ?? 0,
    unready: spec?.unhealthyPodEvictionPolicy === "AlwaysAllow" ? "always" : "ifHealthy",
    disrupted,
  };
}

function unavailabilityOf(status: NonNullable<Stored["status"]>, isObserved: boolean): Counts {
  const disrupted = new Map(Object.entries({ ...status.disruptedPods, ...status.unavailablePods }));
  return {
    allowed: allowedOf(status.unavailableAllowed, isObserved, disrupted.size),
    healthy: status.currentAvailable ?? 0,
    desired: status.desiredAvailable ?? 0,
    unready: "always",
    disrupted,
  };
}

function allowedOf(allowed = 0, isObserved: boolean, disrupted: number): number {
  return isObserved && disrupted <= MOST_DISRUPTED ? Math.max(0, allowed) : 0;
}

/** True for deletion, eviction and update, unless an annotation names fewer operations. */
function protectsUpdates(operations: string | undefined): boolean {
  return !operations || operations.split(",").includes("UPDATE");
}

/** True if the budget covers the pod. */
export function covers(budget: DisruptionBudget, { metadata = {} }: Pod): boolean {
  const { namespace, labels, annotations = {} } = metadata;
  if (budget.namespace !== namespace) return false;
  if (budget.kind === "PodUnavailableBudget") {
    if (annotations[PUB_NO_PROTECTION_ANNOTATION] === "true") return false;
    const related = annotations[RELATED_PUB_ANNOTATION];
    if (related) return related === budget.name;
  }
  if (budget.unclear !== undefined) return true;
  return selectorMatches(budget.selector && shortened(budget.selector, labels ?? {}), labels) === true;
}

/** Number of values up to which a search is faster than a lookup. */
const FEW_VALUES = 8;
const valueSets = new WeakMap<readonly string[], ReadonlySet<string>>();

/** The selector with a long list of values reduced to the value of these labels. It matches the same pods. */
function shortened(selector: LabelSelector, labels: Labels): LabelSelector {
  const { matchExpressions } = selector;
  if (!matchExpressions?.some(({ values }) => (values?.length ?? 0) > FEW_VALUES)) return selector;
  return {
    ...selector,
    matchExpressions: matchExpressions.map((one) => {
      const { key, values = [] } = one;
      if (values.length <= FEW_VALUES) return one;
      const known = valueSets.get(values) ?? new Set(values);
      valueSets.set(values, known);
      const value = labels[key];
      return { ...one, values: value !== undefined && known.has(value) ? [value] : [] };
    }),
  };
}

/** Label keys in the selectors of these budgets. */
export function keysOfBudgets(budgets: readonly DisruptionBudget[]): readonly string[] {
  const keys = budgets.flatMap(({ selector = {} }) => [
    ...Object.keys(selector.matchLabels ?? {}),
    ...(selector.matchExpressions ?? []).map(({ key }) => key),
  ]);
  return [...new Set(keys)].sort();
}

/** KIND NAMESPACE/NAME, the id of the budget in actions. */
export function idOf({ kind, namespace, name }: DisruptionBudget): string {
  return `${kind} ${namespace}/${name}`;
}

/** The budget's current state, as the clause before ": the pod waits". */
export function budgetStanding(budget: DisruptionBudget): string {
  const { isObserved, allowed, healthy, desired, disrupted, unclear } = budget;
  if (unclear !== undefined) return `${idOf(budget)} ${unclear}, so all pods of its namespace wait`;
  if (!isObserved) return `${idOf(budget)} allows none, since its controller has not seen its newest spec`;
  const going = disrupted.size === 0 ? "" : `, ${disrupted.size} on their way down`;
  return `${idOf(budget)} allows ${allowed} more down: ${healthy} healthy of ${desired} that have to be${going}`;
}

/** The budgets that cover one pod. */
export interface Coverage {
  readonly budgets: readonly DisruptionBudget[];
  /** the reason why the pod waits with any budget state, in one sentence, and one of the blocking budgets */
  readonly excess?: { readonly why: string; readonly budget: string };
}

/** Limit of budgets for a pod: registering with each one costs a write. The eviction API allows a single budget. */
const MOST_BUDGETS = 4;
/** Limit of comparisons of selector requirements with the pods of one namespace: about a tenth of a second. */
const MOST_COMPARED = 1_000_000;
const NONE: Coverage = { budgets: [] };
const TOO_MANY = `more than ${MOST_BUDGETS} disruption budgets select the pod`;
const TOO_MUCH = "its namespace has too many disruption budgets to compare each with the pods there";

/** Finds the budgets of a pod. The work per namespace is limited; pods beyond the limit wait. */
export function coverageBy(budgets: readonly DisruptionBudget[]): (pod: Pod) => Coverage {
  const byNamespace = Map.groupBy(budgets, ({ namespace }) => namespace);
  const namespaces = new Map([...byNamespace].map(([namespace, own]) => [namespace, new NamespaceCoverage(own)]));
  return (pod) => namespaces.get(pod.metadata?.namespace ?? "")?.of(pod) ?? NONE;
}

class NamespaceCoverage {
  readonly #keys: ReadonlySet<string>;
  readonly #candidates: ReturnType<typeof candidatesBy>;
  /** Budgets by the labels that budgets select by: pods with the same labels share them. */
  readonly #known = new Map<string, Coverage>();
  #compared = 0;

  constructor(budgets: readonly DisruptionBudget[]) {
    this.#keys = new Set(keysOfBudgets(budgets));
    this.#candidates = candidatesBy(budgets);
  }

  of(pod: Pod): Coverage {
    const { labels = {}, annotations = {} } = pod.metadata ?? {};
    const selected = Object.entries(labels).filter(([key]) => this.#keys.has(key));
    const { [PUB_NO_PROTECTION_ANNOTATION]: unprotected, [RELATED_PUB_ANNOTATION]: related } = annotations;
    const facts = JSON.stringify([unprotected, related, selected.sort()]);
    const coverage = this.#known.get(facts) ?? this.#find(pod, this.#candidates(selected, related));
    this.#known.set(facts, coverage);
    return coverage;
  }

  #find(pod: Pod, some: ReadonlySet<DisruptionBudget>): Coverage {
    const found: DisruptionBudget[] = [];
    for (const budget of some) {
      this.#compared += requirementsOf(budget);
      if (this.#compared > MOST_COMPARED) return beyond(TOO_MUCH, found, budget);
      if (covers(budget, pod)) found.push(budget);
      if (found.length > MOST_BUDGETS) return beyond(TOO_MANY, found, budget);
    }
    return { budgets: found };
  }
}

function beyond(why: string, budgets: readonly DisruptionBudget[], last: DisruptionBudget): Coverage {
  return { budgets, excess: { why, budget: idOf(budgets[0] ?? last) } };
}

/** Finds budgets that may select the pod. An index by a budget's rarest label skips budgets that cannot match. */
function candidatesBy(budgets: readonly DisruptionBudget[]) {
  const pairsOf = ({ selector, unclear }: DisruptionBudget) =>
    unclear === undefined ? textsOf(Object.entries(selector?.matchLabels ?? {})) : [];
  const counts = new Map<string, number>();
  for (const pair of budgets.flatMap(pairsOf)) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  const isRarer = (one: string, other: string) => (counts.get(one) ?? 0) < (counts.get(other) ?? 0);
  const rarest = (pairs: readonly string[]) =>
    pairs.length === 0 ? undefined : pairs.reduce((best, pair) => (isRarer(pair, best) ? pair : best));
  const byPair = Map.groupBy(budgets, (budget) => rarest(pairsOf(budget)));
  const byName = Map.groupBy(budgets, ({ name }) => name);
  return (labels: readonly Label[], related: string | undefined): ReadonlySet<DisruptionBudget> =>
    new Set(
      [undefined, ...textsOf(labels)].flatMap((pair) => byPair.get(pair) ?? []).concat(byName.get(related ?? "") ?? []),
    );
}

type Label = readonly [key: string, value: string];

function textsOf(labels: readonly Label[]): readonly string[] {
  return labels.map((pair) => pair.join("="));
}

function requirementsOf({ selector = {} }: DisruptionBudget): number {
  return 1 + Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions?.length ?? 0);
}
