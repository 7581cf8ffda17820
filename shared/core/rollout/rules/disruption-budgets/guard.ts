/** Finds the pods that the disruption budgets let a rollout restart now, and the budgets that must count them. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { counted } from "../../../../go/counted.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import { isPodReady } from "../../../pod/is-ready.ts";
import { parseUpgradeRecords } from "../../../pod/pod-records.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { budgetStanding, type Coverage, coverageBy, covers, type DisruptionBudget, idOf } from "./disruption-budget.ts";

/** The registration of a pod with its budgets, before a write to the pod. */
export interface Disruption {
  /** time of the write, RFC3339, whole seconds; the pod's own record has the same, which identifies the disruption */
  readonly at: string;
  /** the budgets, each as KIND NAMESPACE/NAME */
  readonly budgets: readonly string[];
}

/** A skipped pod, and the state of the budget that blocks it. */
export interface HeldPod {
  readonly uid: string;
  readonly why: string;
  /** the budget, as KIND NAMESPACE/NAME */
  readonly budget: string;
}

/** Limit of budgets that a text names in full: more would fill a condition. */
export const BUDGETS_NAMED = 3;

/** Pods that wait for budgets. */
export interface BudgetsInTheWay {
  /** number of pods */
  readonly waiting: number;
  /** states of a few budgets, each in one sentence */
  readonly full: readonly string[];
  /** all blocking budgets, as KIND NAMESPACE/NAME */
  readonly names: readonly string[];
}

export const NO_BUDGETS: BudgetsInTheWay = { waiting: 0, full: [], names: [] };

export function waitingForBudgets({ held }: { readonly held: readonly HeldPod[] }): BudgetsInTheWay | undefined {
  if (held.length === 0) return undefined;
  const full = [...new Set(held.map(({ why }) => why))].slice(0, BUDGETS_NAMED);
  const names = [...new Set(held.map(({ budget }) => budget))];
  return { waiting: held.length, full, names };
}

export function disruptionText({ waiting, full }: Omit<BudgetsInTheWay, "names">): string {
  return `${counted(waiting, "pod waits", "pods wait")} for disruption budgets: ${full.join("; ")}`;
}

export interface Guard {
  /** returns true if no budget blocks the pod; the question uses no room */
  readonly isFree: (state: PodState) => boolean;
  /** the caller's `canTake`, for pods that no budget blocks; a taken pod uses room */
  readonly canTake: (state: PodState) => boolean;
  readonly outcome: () => { readonly held: readonly HeldPod[]; readonly disruptions: ReadonlyMap<string, Disruption> };
}

interface Given {
  /** all matched pods */
  readonly pods: Sequence<PodState>;
  readonly budgets: readonly DisruptionBudget[];
  readonly reserved: ReadonlySet<string>;
  readonly now: string;
}

/** The cost of one pod for one budget. */
interface Cost {
  readonly budget: DisruptionBudget;
  readonly pods: 0 | 1;
  /** true: the pod must be registered even without cost, because the budget counts it already */
  readonly isCounted: boolean;
  readonly isAllowed: boolean;
}

/** The guard. Without budgets it allows everything. */
export function guardOf(given: Given, canTake: (state: PodState) => boolean): Guard {
  if (given.budgets.length === 0)
    return { isFree: () => true, canTake, outcome: () => ({ held: [], disruptions: new Map() }) };
  const coverageOf = coverageBy(given.budgets);
  const left = roomOf(given, coverageOf);
  const held = new Map<string, HeldPod>();
  const disruptions = new Map<string, Disruption>();
  const costsOf = (state: PodState) =>
    coverageOf(state.pod).budgets.map((budget) => costOf(budget, state, left.get(budget) ?? 0, given.reserved));
  const whyNot = (state: PodState, costs: readonly Cost[]) => {
    const { excess } = coverageOf(state.pod);
    if (excess) return excess;
    const full = costs.find(({ isAllowed }) => !isAllowed);
    if (full) return { why: budgetStanding(full.budget), budget: idOf(full.budget) };
    const counting = costs.find((cost) => cost.isCounted);
    // The end of an older restart is identified by its exact time.
    if (!counting || !wasWrittenAt(state.pod, given.now)) return undefined;
    return { why: "the pod was written to in this very second", budget: idOf(counting.budget) };
  };
  return {
    isFree: (state) => disruptions.has(uidOf(state)) || whyNot(state, costsOf(state)) === undefined,
    canTake: (state) => {
      const uid = uidOf(state);
      const costs = costsOf(state);
      const hindrance = whyNot(state, costs);
      if (hindrance !== undefined) {
        held.set(uid, { uid, ...hindrance });
        return false;
      }
      if (!canTake(state)) return false;
      const counted = costs.filter(({ isCounted }) => isCounted);
      for (const { budget, pods } of counted) left.set(budget, (left.get(budget) ?? 0) - pods);
      if (counted.length > 0)
        disruptions.set(uid, { at: given.now, budgets: counted.map(({ budget }) => idOf(budget)) });
      return true;
    },
    outcome: () => ({ held: [...held.values()], disruptions }),
  };
}

/**
 * The room of each budget. It leaves out pods that the controller still counts as up although this SidecarSet takes
 * them down or has just written to them: the controller has not seen that yet, or has stopped waiting.
 */
function roomOf({ pods, budgets, reserved }: Given, coverageOf: (pod: Pod) => Coverage): Map<DisruptionBudget, number> {
  const left = new Map(budgets.map((budget) => [budget, budget.allowed]));
  each(pods, (state) => {
    if (!isOnItsWayDown(state, reserved)) return;
    for (const budget of coverageOf(state.pod).budgets)
      if (isCountedAsUp(state.pod, budget)) left.set(budget, (left.get(budget) ?? 0) - 1);
  });
  return left;
}

function isOnItsWayDown({ pod, isUpdated, isConsistent, resize }: PodState, reserved: ReadonlySet<string>): boolean {
  return (isUpdated && !isConsistent) || resize?.isUnderWay === true || reserved.has(pod.metadata?.uid ?? "");
}

function isCountedAsUp(pod: Pod, budget: DisruptionBudget): boolean {
  return isPodReady(pod) && !budget.disrupted.has(pod.metadata?.name ?? "");
}

function costOf(budget: DisruptionBudget, state: PodState, left: number, reserved: ReadonlySet<string>): Cost {
  const { pod } = state;
  if (budget.unclear !== undefined) return { budget, pods: 1, isCounted: false, isAllowed: false };
  if (isFreeOf(budget, pod, left)) return { budget, pods: 0, isCounted: false, isAllowed: true };
  if (budget.disrupted.has(pod.metadata?.name ?? "")) return { budget, pods: 0, isCounted: true, isAllowed: true };
  // Pods that are going down have already used their room.
  const isTaken = isPodReady(pod) && isOnItsWayDown(state, reserved);
  const pods = isTaken ? 0 : 1;
  return { budget, pods, isCounted: true, isAllowed: left >= pods };
}

/** True if the pod uses none of the budget: it has not started, or it is down and the budget ignores such pods. */
function isFreeOf({ unready, isObserved, healthy, desired }: DisruptionBudget, pod: Pod, left: number): boolean {
  if (pod.status?.phase === "Pending") return true;
  if (isPodReady(pod)) return false;
  return unready === "always" || (isObserved && desired > 0 && healthy >= desired && left >= 0);
}

function wasWrittenAt({ metadata }: Pod, now: string): boolean {
  const { records } = parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]);
  return Object.values(records).some((record) => record?.updateTimestamp === now);
}

function uidOf({ pod }: PodState): string {
  return pod.metadata?.uid ?? "";
}

// Writes to disruption budgets: they count pods that go down, and release pods that have recovered.

/** A pod that has recovered although a budget still counts it as going down. */
export interface EndedDisruption {
  /** the budget, as KIND NAMESPACE/NAME */
  readonly budget: string;
  /** name of the pod */
  readonly pod: string;
}

/**
 * Disruptions of this SidecarSet that have ended: the pod is updated and ready, and the budget has the time of the
 * pod's record. Another time belongs to an eviction or another SidecarSet. OpenKruise's controller ends its own.
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

/** A pod that a pass is about to write to. */
interface CountedPod {
  readonly name: string;
  readonly disruption: Disruption;
}

/** One conditional write to a budget's status. */
interface BudgetWrite {
  readonly budget: DisruptionBudget;
  /** body of the merge patch */
  readonly body: object;
}

/**
 * The write to a budget, as the eviction API makes it: each new pod uses one allowed disruption. A counted pod gets the
 * new time, so that the end of the older disruption does not end this one. "full": the budget allows too few.
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
