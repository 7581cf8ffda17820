/** Decides what is written to disruption budgets: which pods they are to count as going down, and which are back. */
import type { Pod } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { covers, type DisruptionBudget, idOf } from "./disruption-budget.ts";
import type { Disruption } from "./guard.ts";

/** A pod that a budget still counts as going down, and that is back. */
export interface EndedDisruption {
  /** KIND NAMESPACE/NAME of the budget */
  readonly budget: string;
  /** name of the pod */
  readonly pod: string;
}

/**
 * What the patches of this SidecarSet have been counted for, and is over: updated and ready again, and counted since the very
 * time that the pod's record has. Counted since another time it belongs to an eviction, or another SidecarSet.
 * OpenKruise's controller finds out by itself.
 */
export function endedDisruptions(
  { metadata }: SidecarSet,
  pods: Sequence<PodState>,
  budgets: readonly DisruptionBudget[],
): readonly EndedDisruption[] {
  const counting = budgets.filter(({ kind, disrupted }) => kind === "PodDisruptionBudget" && disrupted.size > 0);
  const ended: EndedDisruption[] = [];
  if (counting.length === 0) return ended;
  const byPod = new Map<string, DisruptionBudget[]>();
  for (const budget of counting)
    for (const name of budget.disrupted.keys()) {
      const key = `${budget.namespace}/${name}`;
      byPod.set(key, [...(byPod.get(key) ?? []), budget]);
    }
  each(pods, (state) => {
    const own = byPod.get(`${state.pod.metadata?.namespace}/${state.pod.metadata?.name}`);
    if (own && isBack(state)) ended.push(...endedOf(metadata?.name ?? "", state.pod, own));
  });
  return ended;
}

function isBack({ isUpdated, isConsistent, isReady, isReservedNow }: PodState): boolean {
  return isUpdated && isConsistent && isReady && isReservedNow !== true;
}

function endedOf(sidecarSet: string, pod: Pod, counting: readonly DisruptionBudget[]): readonly EndedDisruption[] {
  const { name = "", annotations } = pod.metadata ?? {};
  const own = counting.filter((budget) => covers(budget, pod));
  if (own.length === 0) return [];
  const since = parseUpgradeRecords(annotations?.[HASH_ANNOTATION]).records[sidecarSet]?.updateTimestamp;
  return own
    .filter(({ disrupted }) => disrupted.get(name) === since)
    .map((budget) => ({ budget: idOf(budget), pod: name }));
}

/** A pod that is about to be written to. */
export interface CountedPod {
  readonly name: string;
  readonly disruption: Disruption;
}

/** One conditional write of a budget's status. */
export interface BudgetWrite {
  readonly budget: DisruptionBudget;
  /** of a merge patch */
  readonly body: object;
}

/**
 * As the eviction API does it: one less is allowed for each pod that is not counted yet. One that is counted already gets
 * the new time, so that the end of the older disruption does not end this one. "full": fewer are allowed than are wanted.
 */
export function writeOf(
  budget: DisruptionBudget,
  pods: readonly CountedPod[],
  ended: readonly EndedDisruption[],
): BudgetWrite | "nothing" | "full" {
  const id = idOf(budget);
  const wanted = pods.filter(({ disruption }) => disruption.budgets.includes(id));
  const changed = wanted.filter(({ name, disruption }) => budget.disrupted.get(name) !== disruption.at);
  const added = changed.filter(({ name }) => !budget.disrupted.has(name)).length;
  if (added > budget.allowed) return "full";
  const isWanted = new Set(wanted.map(({ name }) => name));
  const over = ended.filter((one) => one.budget === id && !isWanted.has(one.pod));
  if (changed.length + over.length === 0) return "nothing";
  const entries = {
    ...Object.fromEntries(over.map(({ pod }) => [pod, null])),
    ...Object.fromEntries(changed.map(({ name, disruption }) => [name, disruption.at])),
  };
  const { uid, resourceVersion, kind } = budget;
  const left = budget.allowed - added;
  const counts = kind === "PodDisruptionBudget" ? { disruptionsAllowed: left } : { unavailableAllowed: left };
  const status = {
    ...(added === 0 ? {} : counts),
    [kind === "PodDisruptionBudget" ? "disruptedPods" : "unavailablePods"]: entries,
  };
  return { budget, body: { metadata: { uid, resourceVersion }, status } };
}
