/** The facts of a plan about pods that are written to together. */
import type { Pod } from "../../../api/kubernetes.ts";
import { RESIZE_ANNOTATION } from "../../../api/names.ts";
import { countOf, type Sequence, where } from "../../../go/sequence.ts";
import type { Action, ImageChange, PodPurpose, Restarted } from "../../actions.ts";
import { MAX_RESERVATIONS } from "../../ledger.ts";
import { uidOf } from "../../pod/pod-state.ts";
import { keyOfWorkload, restartedWorkloadOf } from "../../pod/workload.ts";
import type { DrainsAhead } from "../rules/drain/drain.ts";
import { usedBudget, usesBudget } from "../select/budget.ts";
import { type Observed, sceneOf } from "../select/observed-states.ts";
import { NOTHING_RESERVED } from "../select/reserved.ts";
import { type Summary, unavailableOf } from "../summary.ts";

interface Decided {
  readonly actions: readonly Action[];
  readonly summary: Summary;
}

export type PodWrite = Extract<Action, { kind: "PatchPod" | "EvictPod" }>;

/** A pod that a step writes to. */
export interface PlannedPod {
  readonly namespace: string;
  readonly name: string;
  readonly images: readonly Omit<ImageChange, "index">[];
  /** true: a new pod replaces the pod, by eviction or by a restart of its workload; absent: it is updated in place */
  readonly isReplaced?: true;
}

export interface RolloutPlan {
  readonly readyAfterSeconds: number;
  /** number of pods that are down before the first step */
  readonly downBefore: number;
  readonly steps: readonly PlannedStep[];
  /** seconds until the last pod that recovers is ready */
  readonly seconds: number;
  /** true: every matched pod is updated and ready at the end */
  readonly isComplete: boolean;
  /** true: the plan has more steps than the caller asked for */
  readonly isCutShort: boolean;
  /** host of the gate that passes ask before each batch; absent: there is no gate */
  readonly gate?: string;
  /** seconds of a drain, and number of old pods without the label for drains; absent: no drains are configured */
  readonly drain?: DrainsAhead;
  /**
   * metric checks that passes evaluate before each batch, and the minimum interval. A plan does not evaluate them.
   * Absent: there are none
   */
  readonly checks?: { readonly names: readonly string[]; readonly intervalSeconds: number };
  /** counts and reasons before the first step */
  readonly before: Summary;
  /** counts after the last step, and the reason why the remaining pods wait */
  readonly after: Summary;
}

/** Pods that are written to together. */
export interface PlannedStep {
  /** seconds since the start of the plan */
  readonly atSeconds: number;
  /** the purpose of the writes: a new image or another pod, within the budget, or the end of hot upgrades */
  readonly purpose: PodPurpose;
  /** the step's pods, in the order of the rollout */
  readonly pods: readonly PlannedPod[];
  /** number of updated pods before the step */
  readonly updated: number;
  /** pods that maxUnavailable counts after the step: unready pods of the new release, including earlier ones */
  readonly unavailable: number;
  /** number of pods that are down after the step, for any reason */
  readonly down: number;
  readonly maxUnavailable: number;
  /** names of the waves of the step's pods, "" for pods outside all waves; absent: there are no waves */
  readonly waves?: readonly string[];
  /** restarted workloads, such as `Deployment shop/web`; their pods follow one after another. Absent: none */
  readonly restarts?: readonly string[];
  /** pods held by disruption budgets: their number, and each budget as KIND NAMESPACE/NAME; absent: none */
  readonly held?: { readonly pods: number; readonly budgets: readonly string[] };
}

/** The writes to pods, at most as many as a ledger can hold. */
export function podWrites({ actions }: Decided): readonly PodWrite[] {
  return actions
    .filter((action) => action.kind === "PatchPod" || action.kind === "EvictPod")
    .slice(0, MAX_RESERVATIONS);
}

interface Done {
  readonly writes: readonly PodWrite[];
  /** uids of pods that already used the budget, such as drained pods */
  readonly counted: ReadonlySet<string>;
  readonly restarts: readonly Restarted[];
  /** pods of the restarted workloads */
  readonly pods: readonly PlannedPod[];
}

export function stepOf(
  atSeconds: number,
  { writes, counted, restarts, pods: recreated }: Done,
  { summary }: Decided,
  down: DownNow,
): PlannedStep {
  const { updated, maxUnavailable } = summary;
  // Reserved pods and pods with changing resources count too.
  const taken = writes.filter(({ usesBudget, pod }) => usesBudget && !counted.has(pod.uid));
  const unavailable = Math.max(unavailableOf(summary) + taken.length, down.counted);
  const pods = [...writes.map(plannedPod), ...recreated];
  const counts = { updated, unavailable, down: Math.max(unavailable, down.all), maxUnavailable };
  const restarted = restarts.length > 0 ? { restarts: restarts.map(keyOfWorkload) } : {};
  return { atSeconds, purpose: purposeOf(writes[0]), pods, ...counts, ...restarted };
}

/** uids of pods that use the budget. */
export function usingBudget(observed: Observed, context: Parameters<typeof sceneOf>[1]): ReadonlySet<string> {
  const { states, budgetUse } = sceneOf(observed, context);
  return new Set(where(states, (state) => usesBudget(state, budgetUse)).map(({ pod }) => uidOf(pod)));
}

/** All pods of these workloads, in the workloads' order. */
export function restartedPods(pods: Sequence<Pod>, restarts: readonly Restarted[]): readonly PlannedPod[] {
  const keys = new Set(restarts.map(keyOfWorkload));
  if (keys.size === 0) return [];
  return [...where(pods, (pod) => keys.has(restartedWorkloadOf(pod)?.key ?? ""))].map(({ metadata }) => ({
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    images: [],
    isReplaced: true,
  }));
}

/** The purpose of a step. Before a resize, a first write only marks the pod. */
function purposeOf(first: PodWrite | undefined): PlannedStep["purpose"] {
  const patch = first?.kind === "PatchPod" ? first : undefined;
  const isMark = patch?.images.length === 0 && Object.keys(patch.annotations).join() === RESIZE_ANNOTATION;
  return isMark ? "resize" : (patch?.purpose ?? "upgrade");
}

function plannedPod(write: PodWrite): PlannedPod {
  const { namespace, name } = write.pod;
  if (write.kind === "EvictPod") return { namespace, name, images: [], isReplaced: true };
  const { images } = write;
  return { namespace, name, images: images.map(({ container, from, to }) => ({ container, from, to })) };
}

/** Numbers of pods that are down at a moment of a plan: those that maxUnavailable counts, and all. */
interface DownNow {
  readonly counted: number;
  readonly all: number;
}

export function downNow(observed: Observed, context: Parameters<typeof sceneOf>[1]): DownNow {
  const { states, budgetUse } = sceneOf({ ...observed, reserved: NOTHING_RESERVED }, context);
  return {
    counted: usedBudget(states, budgetUse),
    all: countOf(states, (state) => state.isDrainedElsewhere || !(state.isConsistent && state.isReady)),
  };
}
