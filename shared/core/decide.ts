/** Decides what one pass does for one SidecarSet, from what was observed: a list of the reference's steps, as data. */
import type { ControllerRevision, Pod } from "../api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../api/sidecarset.ts";
import { haltRoom } from "./halt/halt-room.ts";
import { type Standstill, standstillOf } from "./halt/standstill.ts";
import type { Action } from "./lib/action.ts";
import { type Sequence, where } from "./lib/sequence.ts";
import { type FailingPod, failingPods } from "./pod/failing-pods.ts";
import { type InPlaceFacts, type PodState, podStateOf } from "./pod/pod-state.ts";
import { matchedStates, podsOf } from "./pod/pod-states.ts";
import { planHistory } from "./revision/plan-history.ts";
import { calculateStatus, isStatusChanged } from "./status/calculate-status.ts";
import { maxUnavailableOf, usedBudget } from "./upgrade/budget.ts";
import { type DownPod, downPods } from "./upgrade/down-pods.ts";
import { immutableFields } from "./upgrade/immutable-fields.ts";
import { downBeside, outOfTurn } from "./upgrade/ordinal-turn.ts";
import { type Batch, planBatch, planFlips, planMarks, planShrinks } from "./upgrade/plan-batch.ts";
import { isResizable, withResize } from "./upgrade/resize.ts";

export interface Observation {
  /** v1beta1, as read at the beginning of the pass */
  readonly sidecarSet: SidecarSet;
  /** selected by spec.selector and namespaceSelector, namespaces in sorted order, each through `projectPod` */
  readonly pods: Sequence<Pod>;
  /** of the kruise namespace, by label kruise.io/sidecarset-name */
  readonly revisions: readonly ControllerRevision[];
  /** found under a name that CreateRevision asked for, after AlreadyExists */
  readonly taken: readonly ControllerRevision[];
  /** uids of pods that hold a reservation: they use budget although still seen not updated */
  readonly reserved: ReadonlySet<string>;
}

export interface DecideContext {
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  readonly kruiseNamespace: string;
  /** gate StrictMaxUnavailable: every pod that is down uses budget; absent: as in OpenKruise only updated ones do */
  readonly isStrict?: boolean;
  /** true: all reservations were made for this generation and hash; absent: not known */
  readonly isReservedForThis?: boolean;
  /** how many pods can be reserved beside those that are: for others nothing is planned; absent: as many as the budget allows */
  readonly room?: number;
  /** conditions SidecarSetUpgradable that are wrong by now are put right; absent: they stay, as in OpenKruise */
  readonly areConditionsMended?: boolean;
  /** what upgrading more in place than OpenKruise does needs to know; absent: it is not done */
  readonly inPlace?: InPlaceFacts;
}

const DOWN_PODS_NAMED = 3;

/** Why a pass does no more than it does. */
type Hold =
  | "paused"
  | "NotUpdate"
  /** too many updated pods fail, where somebody has said how many those are */
  | "halted"
  /** nobody can tell what an annotation asks for */
  | "unreadable"
  /** a gate has not allowed the next batch */
  | "gate"
  /** every matched pod is updated */
  | "finished"
  /** hot upgrades are flipped first, new ones begin in the next pass */
  | "flip"
  /** pods whose new image runs get their smaller resources first, other pods are upgraded in the next pass */
  | "shrink"
  /** every pod that waits is kept by the partition */
  | "partition"
  /** pods wait for others to become ready */
  | "budget"
  /** pods of StatefulSets wait for their turn, where ordinals are followed */
  | "order"
  /** pods wait for others of their owners, where those have budgets */
  | "ownerBudget"
  /** no pod waits: the old ones are in flight, not selected or not upgradable */
  | "nothingWaits"
  /** everything that may be upgraded is being upgraded by this decision */
  | "none";

/** A pod that could not be handled; it is left alone, the others are not held up by it. */
export type PodProblem = Batch["problems"][number];

/** Counts of pods, for the report. */
export interface Summary {
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  readonly updatedReady: number;
  /** may be upgraded in place, before partition and budget */
  readonly waiting: number;
  readonly notUpgradable: number;
  /** where those differ from what they were made with, such as `spec.containers{agent}.env` */
  readonly immutableFields: readonly string[];
  /** old pods that stay because of the partition */
  readonly partition: number;
  readonly maxUnavailable: number;
  /** updated pods that are down (with the gate StrictMaxUnavailable old ones too), and reserved ones */
  readonly used: number;
  /** of the updated pods that are down, a few by name */
  readonly down: readonly DownPod[];
  /** pods that this decision upgrades, flips or shrinks, those for which there is no room among them */
  readonly selected: number;
  /** of those: how many there is no room to reserve, so that nothing is planned for them yet; absent: none */
  readonly beyondRoom?: number;
  readonly hold: Hold;
  /** where pods of StatefulSets wait for their turn: what the first of them waits for */
  readonly order?: string;
  /** why a gate has not allowed the next batch, one sentence */
  readonly gate?: string;
  /** where owners have budgets: how many pods wait for them, and who is in their way */
  readonly owners?: { readonly waiting: number; readonly full: readonly string[] };
  readonly problems: readonly PodProblem[];
}

export interface Decision {
  /** in the order in which they are to be carried out */
  readonly actions: readonly Action[];
  /** as observed, whether or not it has to be written */
  readonly status: SidecarSetStatus;
  readonly summary: Summary;
  /** updated pods that cannot run, all of them */
  readonly failing: readonly FailingPod[];
  /** set when the rollout stops because of them, or of an annotation that nobody can read: why */
  readonly halt?: string;
  /** set when the SidecarSet is to be put back because of that */
  readonly undo?: Standstill["undo"];
}

/**
 * Pure: the same observation and `now` give the same decision. Nothing in a pod makes it throw.
 * @throws TypeError for a spec that the API server would not have stored
 */
export function decide(observation: Observation, context: DecideContext): Decision {
  const { now, kruiseNamespace, isStrict = false, isReservedForThis = false, inPlace } = context;
  const { room = Number.POSITIVE_INFINITY } = context;
  const { sidecarSet } = observation;
  const strategy = sidecarSet.spec.updateStrategy;
  const pods = statesOf(observation, inPlace);
  const history = planHistory(observation, pods, kruiseNamespace);
  const beside = downBeside(sidecarSet, observation.pods);
  const claimed = where(pods, (state) => state.isClaimed === true).map(({ pod }) => pod.metadata?.uid ?? "");
  const claims = { reserved: new Set(claimed), isStrict, isReservedForThis, downBeside: beside };
  const status = calculateStatus(sidecarSet, pods, history.latest);
  const record = [...history.actions, ...recordStatus(sidecarSet, status)];
  const counts: Counts = {
    ...countsOf(status),
    maxUnavailable: maxUnavailableOf(strategy, pods.length),
    used: usedBudget(pods, claims),
    down: downPods(sidecarSet, pods, DOWN_PODS_NAMED),
  };
  const failing = failingPods(sidecarSet, pods);
  const recordOnly = (hold: Hold): Decision => ({
    actions: record,
    status,
    summary: { ...NOTHING, ...counts, hold },
    failing,
  });

  if (strategy?.type === "NotUpdate") return recordOnly("NotUpdate");
  if (strategy?.paused) return recordOnly("paused");
  const { revisions } = observation;
  const areAllUpdated = counts.updated >= counts.matched;
  const { latestRevision } = status;
  const still = standstillOf(sidecarSet, { areAllUpdated, latestRevision, pods, revisions, now });
  if (still) return { ...recordOnly(still.hold), halt: still.halt, undo: still.undo };

  const flips = planFlips(sidecarSet, pods, now);
  if (flips.length > 0) {
    const selected = flips.filter(({ kind }) => kind === "PatchPod").length;
    const summary: Summary = { ...NOTHING, ...counts, selected, hold: "flip" };
    return { actions: [...record, ...flips], status, summary, failing };
  }

  const shrinks = inPlace?.canResize ? planShrinks(pods) : [];
  if (shrinks.length > 0) {
    const summary: Summary = { ...NOTHING, ...counts, selected: shrinks.length, hold: "shrink" };
    return { actions: [...record, ...shrinks], status, summary, failing };
  }

  const marks = context.areConditionsMended ? planMarks(sidecarSet, pods, now) : [];
  if (areAllUpdated) {
    const finished = recordOnly("finished");
    return { ...finished, actions: [...finished.actions, ...marks] };
  }

  const batch = planBatch(sidecarSet, pods, claims, {
    now,
    latestRevision: history.latest.name,
    room: Math.min(room, haltRoom(sidecarSet, pods)),
    withNatives: inPlace?.kubelets !== undefined,
  });
  const fields = immutableFields(sidecarSet, podsOf(batch.selection.notUpgradable), observation.revisions);
  const summary = { ...counts, ...summarize(batch), immutableFields: fields };
  return { actions: [...record, ...marks, ...batch.actions], status, summary, failing };
}

function statesOf({ sidecarSet, pods, revisions, reserved }: Observation, inPlace: InPlaceFacts | undefined) {
  const canResize = (pod: Pod) => isResizable(sidecarSet, pod, revisions);
  const stateOf = (pod: Pod) => {
    const state = podStateOf(pod, sidecarSet, inPlace);
    return inPlace?.canResize ? withResize(state, sidecarSet, canResize) : state;
  };
  // Those whose resources have begun to change are on their way, too.
  const isClaimed = ({ pod, resize }: PodState) =>
    resize?.isUnderWay === true || (reserved.size > 0 && reserved.has(pod.metadata?.uid ?? ""));
  return matchedStates(pods, sidecarSet, stateOf, isClaimed);
}

type Counts = Pick<Summary, "matched" | "updated" | "ready" | "updatedReady" | "maxUnavailable" | "used" | "down">;
type Plans = Omit<Summary, keyof Counts>;

const NOTHING: Omit<Plans, "hold"> = {
  waiting: 0,
  notUpgradable: 0,
  immutableFields: [],
  partition: 0,
  selected: 0,
  problems: [],
};

function recordStatus(sidecarSet: SidecarSet, status: SidecarSetStatus): readonly Action[] {
  if (!isStatusChanged(sidecarSet.status, status)) return [];
  return [{ kind: "PatchStatus", sidecarSet: sidecarSet.metadata?.name ?? "", status }];
}

function countsOf({ matchedPods = 0, updatedPods = 0, readyPods = 0, updatedReadyPods = 0 }: SidecarSetStatus) {
  return { matched: matchedPods, updated: updatedPods, ready: readyPods, updatedReady: updatedReadyPods };
}

function summarize(batch: Batch): Omit<Plans, "immutableFields"> {
  const { selection, beyondRoom, problems } = batch;
  return {
    waiting: selection.waiting.length,
    notUpgradable: selection.notUpgradable.length,
    partition: selection.kept,
    selected: selection.selected.length,
    ...(beyondRoom === 0 ? {} : { beyondRoom }),
    ...ownersOf(selection),
    hold: holdOf(batch),
    ...orderOf(selection),
    problems,
  };
}

function orderOf({ turn, waiting }: Batch["selection"]): Pick<Summary, "order"> {
  const [order] = turn ? [...waiting].flatMap(({ pod }) => outOfTurn(pod, turn) ?? []) : [];
  return order === undefined ? {} : { order };
}

function ownersOf({ crowded, fullOwners }: Batch["selection"]): Pick<Plans, "owners"> {
  return crowded.length === 0 ? {} : { owners: { waiting: crowded.length, full: fullOwners } };
}

function holdOf({ selection }: Batch): Hold {
  if (selection.blocked > 0) return "budget";
  if (selection.outOfTurn > 0) return "order";
  if (selection.crowded.length > 0) return "ownerBudget";
  if (selection.kept > 0) return "partition";
  return selection.selected.length > 0 ? "none" : "nothingWaits";
}
