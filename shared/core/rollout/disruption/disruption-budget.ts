/** Decides what a PodDisruptionBudget, or OpenKruise's PodUnavailableBudget, says now: whom it is about, and how many more may go down. */
import type { KubernetesObject, LabelSelector, Labels, Pod } from "../../../api/kubernetes.ts";
import { PUB_NO_PROTECTION_ANNOTATION, PUB_OPERATIONS_ANNOTATION, RELATED_PUB_ANNOTATION } from "../../../api/names.ts";
import { selectorMatches } from "../../../go/label-selector.ts";

export type BudgetKind = "PodDisruptionBudget" | "PodUnavailableBudget";

/** A budget as it was read. Its status is the one counter for everything that takes pods down. */
export interface DisruptionBudget {
  readonly kind: BudgetKind;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** absent: it selects no pod by labels */
  readonly selector?: LabelSelector;
  /** false: its controller has not seen the spec as it is now, so that none is allowed */
  readonly isObserved: boolean;
  /** how many more pods may go down */
  readonly allowed: number;
  /** pods that its controller counts as up, and how many of them there have to be */
  readonly healthy: number;
  readonly desired: number;
  /** which pods that are not ready cost nothing: all, or all while enough others are healthy */
  readonly unready: "always" | "ifHealthy";
  /** name of a pod that is counted as down since it is about to go down → since when, RFC3339 */
  readonly disrupted: ReadonlyMap<string, string>;
}

/** More are not confirmed by the controller: the eviction API allows none then. */
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

/** undefined: in-place updates are none of its business, or it asks for no pod to be up. */
export function disruptionBudgetOf(kind: BudgetKind, object: KubernetesObject): DisruptionBudget | undefined {
  const { metadata = {}, spec = {}, status = {} } = object as Stored;
  const { namespace = "", name = "", uid = "", resourceVersion = "", generation = 0 } = metadata;
  const isObserved = (status.observedGeneration ?? 0) >= generation;
  const { selector } = spec;
  const common = {
    kind,
    namespace,
    name,
    uid,
    resourceVersion,
    isObserved,
    ...(selector ? { selector } : {}),
  };
  if (kind === "PodDisruptionBudget") return { ...common, ...disruptionsOf(status, spec, isObserved) };
  const isAsked = protectsUpdates(metadata.annotations?.[PUB_OPERATIONS_ANNOTATION]);
  if (!isAsked || (isObserved && (status.desiredAvailable ?? 0) === 0)) return undefined;
  return { ...common, ...unavailabilityOf(status, isObserved) };
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

/** Deletion, eviction and update, unless an annotation names fewer. */
function protectsUpdates(operations: string | undefined): boolean {
  return !operations || operations.split(",").includes("UPDATE");
}

/** Whether the budget is about the pod. */
export function covers(budget: DisruptionBudget, { metadata = {} }: Pod): boolean {
  const { namespace, labels, annotations = {} } = metadata;
  if (budget.namespace !== namespace) return false;
  if (budget.kind === "PodUnavailableBudget") {
    if (annotations[PUB_NO_PROTECTION_ANNOTATION] === "true") return false;
    const related = annotations[RELATED_PUB_ANNOTATION];
    if (related) return related === budget.name;
  }
  return selectorMatches(budget.selector && shortened(budget.selector, labels ?? {}), labels) === true;
}

/** A search in more values takes longer than looking one up. */
const FEW_VALUES = 8;
const valueSets = new WeakMap<readonly string[], ReadonlySet<string>>();

/** The selector with only the value of a long list that these labels have: it matches them as before. */
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

/** All that `covers` reads of a pod, where the budgets select by these label keys: equal texts, the same budgets. */
export function coverageKey({ metadata = {} }: Pod, labelKeys: ReadonlySet<string>): string {
  const { namespace, labels = {}, annotations = {} } = metadata;
  const selected = Object.entries(labels).filter(([key]) => labelKeys.has(key));
  const { [PUB_NO_PROTECTION_ANNOTATION]: unprotected, [RELATED_PUB_ANNOTATION]: related } = annotations;
  return JSON.stringify([namespace, unprotected, related, selected.sort()]);
}

/** Label keys by which these budgets select. */
export function keysOfBudgets(budgets: readonly DisruptionBudget[]): readonly string[] {
  const keys = budgets.flatMap(({ selector = {} }) => [
    ...Object.keys(selector.matchLabels ?? {}),
    ...(selector.matchExpressions ?? []).map(({ key }) => key),
  ]);
  return [...new Set(keys)].sort();
}

/** KIND NAMESPACE/NAME, by which actions name it. */
export function idOf({ kind, namespace, name }: DisruptionBudget): string {
  return `${kind} ${namespace}/${name}`;
}

/** What it says, to complete "…: the pod waits". */
export function budgetStanding(budget: DisruptionBudget): string {
  const { isObserved, allowed, healthy, desired, disrupted } = budget;
  if (!isObserved) return `${idOf(budget)} allows none, since its controller has not seen its newest spec`;
  const going = disrupted.size === 0 ? "" : `, ${disrupted.size} on their way down`;
  return `${idOf(budget)} allows ${allowed} more down: ${healthy} healthy of ${desired} that have to be${going}`;
}
