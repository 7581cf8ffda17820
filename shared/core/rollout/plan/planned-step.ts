/** Decides what a plan says of pods that are written to at the same time. */
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

/** One pod that is written to. */
export interface PlannedPod {
  readonly namespace: string;
  readonly name: string;
  readonly images: readonly Omit<ImageChange, "index">[];
  /** another pod comes in its place, since it is evicted or its workload is restarted; absent: it is updated in place */
  readonly isReplaced?: true;
}

export interface RolloutPlan {
  readonly readyAfterSeconds: number;
  /** pods that are down before the first step */
  readonly downBefore: number;
  readonly steps: readonly PlannedStep[];
  /** until the last pod that comes back is ready */
  readonly seconds: number;
  /** every matched pod is updated and ready in the end */
  readonly isComplete: boolean;
  /** there are more steps than were asked for */
  readonly isCutShort: boolean;
  /** host of the gate that passes ask before each batch; absent: there is none */
  readonly gate?: string;
  /** for how long pods are drained, and how many old ones have no label for that; absent: nobody asks for it */
  readonly drain?: DrainsAhead;
  /** of metrics, which passes evaluate before each batch, so far apart at least; a plan does not. Absent: there are none */
  readonly checks?: { readonly names: readonly string[]; readonly intervalSeconds: number };
  /** counts and reasons before the first step … */
  readonly before: Summary;
  /** … and after the last: what holds the rest back */
  readonly after: Summary;
}

/** Pods that are written to at the same time. */
export interface PlannedStep {
  /** from the beginning */
  readonly atSeconds: number;
  /** a new image, or another pod, within the budget; or the end of hot upgrades */
  readonly purpose: PodPurpose;
  /** in the order in which they get their turn */
  readonly pods: readonly PlannedPod[];
  /** as it stands before the step */
  readonly updated: number;
  /** pods that maxUnavailable counts once the step is made: those with the new release that are down, also those that were down before */
  readonly unavailable: number;
  /** all that are down then, whatever took them down */
  readonly down: number;
  readonly maxUnavailable: number;
  /** names of those that its pods are in, "" for no wave; absent: there are none */
  readonly waves?: readonly string[];
  /** such as `Deployment shop/web`: restarted; their pods come from then on, not all at once. Absent: none */
  readonly restarts?: readonly string[];
  /** how many pods were passed over because of disruption budgets, and KIND NAMESPACE/NAME of those; absent: none */
  readonly held?: { readonly pods: number; readonly budgets: readonly string[] };
}

/** No more than a ledger holds at a time. */
export function writesOf({ actions }: Decided): readonly PodWrite[] {
  return actions
    .filter((action) => action.kind === "PatchPod" || action.kind === "EvictPod")
    .slice(0, MAX_RESERVATIONS);
}

interface Done {
  readonly writes: readonly PodWrite[];
  /** uids of pods that used the budget before, such as drained ones */
  readonly counted: ReadonlySet<string>;
  readonly restarts: readonly Restarted[];
  /** of the workloads that are restarted */
  readonly pods: readonly PlannedPod[];
}

export function stepOf(
  atSeconds: number,
  { writes, counted, restarts, pods: recreated }: Done,
  { summary }: Decided,
  down: DownNow,
): PlannedStep {
  const { updated, maxUnavailable } = summary;
  // What is reserved counts too, and what changes its resources.
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

/** All pods of these workloads, in the order of their list. */
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

/** A pod whose resources are to be changed is marked first, by a write that changes nothing else. */
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

/** Decides how many pods are down at a moment of a plan: those that maxUnavailable counts, and all that there are. */
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
