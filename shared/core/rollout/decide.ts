/** Decides what one pass does for one SidecarSet, from what was observed: a list of the reference's steps, as data. */
import type { ControllerRevision } from "../../api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../../api/sidecarset.ts";
import type { Action } from "../actions.ts";
import { type FailingPod, failingPods } from "../pod/failing-pods.ts";
import { podsOf } from "../pod/pod-states.ts";
import type { CheckRecord, Held } from "./checks/check-records.ts";
import { type Standstill, standstillOf } from "./halt/standstill.ts";
import { planHistory } from "./history/plan-history.ts";
import { evictionsOf } from "./replace/plan-replacement.ts";
import type { RolloutSettings } from "./rollout-settings.ts";
import { type Claims, maxUnavailableOf, totalOf, usedBudget } from "./select/budget.ts";
import { type DownPod, downPods } from "./select/down-pods.ts";
import { type Observed, type Scene, sceneOf } from "./select/observed-states.ts";
import { outOfTurn } from "./select/ordinal-turn.ts";
import { calculateStatus, isStatusChanged } from "./status.ts";
import { immutableFields } from "./upgrade/immutable-fields.ts";
import { type Batch, nextBatch, planFlips, planMarks, planShrinks } from "./upgrade/plan-batch.ts";
import { keptRecord, type WavesRecord, type WavesSummary } from "./waves/standing.ts";

/** All that a decision is made from. Nothing in it is optional: who forgets one would decide otherwise than a pass. */
export interface Observation extends Observed {
  /** found under a name that CreateRevision asked for, after AlreadyExists */
  readonly taken: readonly ControllerRevision[];
  /** what came of checks of metrics, as the ledger says; empty: none was evaluated */
  readonly checks: readonly CheckRecord[];
}

export interface DecideContext {
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  readonly kruiseNamespace: string;
  readonly settings: RolloutSettings;
  /** true: conditions SidecarSetUpgradable that are wrong by now stay, as in OpenKruise; absent: as passes do, which put them right */
  readonly areConditionsLeft?: true;
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
  /** checks of metrics have not passed, or are to be evaluated again some time after the last batch */
  | "metrics"
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
  /** pods wait for namespaces that come before theirs */
  | "wave"
  /** evictions were refused a moment ago, mostly by PodDisruptionBudgets, and nothing else can be done */
  | "evictionRefused"
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
  /** what checks of metrics say, where they are in the way of the next batch */
  readonly metrics?: Held;
  /** why checks of metrics have stopped the rollout */
  readonly stopped?: string;
  /** where owners have budgets: how many pods wait for them, and who is in their way */
  readonly owners?: { readonly waiting: number; readonly full: readonly string[] };
  /** where pods that cannot be upgraded in place are replaced, and there are such pods */
  readonly replaced?: Replaced;
  readonly problems: readonly PodProblem[];
  /** how far the release has come through its waves; absent: nobody asks for them */
  readonly waves?: WavesSummary;
}

/** Counts of pods that only get there by an eviction. */
interface Replaced {
  /** before partition and budget; among those that wait */
  readonly waiting: number;
  /** that this decision evicts */
  readonly selected: number;
  /** not evicted now, since an eviction of a pod of the same controller was refused */
  readonly kept: number;
  /** why none is evicted, one sentence */
  readonly stop?: string;
  /** set with it when pods came back without what they should have */
  readonly isInVain?: true;
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
  /** what the status is to say of waves; absent: nothing */
  readonly waves?: WavesRecord;
}

/**
 * Pure: the same observation and `now` give the same decision. Nothing in a pod makes it throw.
 * @throws TypeError for a spec that the API server would not have stored
 */
export function decide(observation: Observation, context: DecideContext): Decision {
  const scene = sceneOf(observation, context);
  const decision = decideOn(scene, observation, context);
  const waves = scene.waves?.record ?? keptRecord(observation.sidecarSet);
  return waves ? { ...decision, waves } : decision;
}

function decideOn(scene: Scene, observation: Observation, context: DecideContext): Decision {
  const { now, kruiseNamespace, settings } = context;
  const { sidecarSet, isResizeServed } = observation;
  const strategy = sidecarSet.spec.updateStrategy;
  const { states: pods, claims, waves } = scene;
  const history = planHistory(observation, pods, kruiseNamespace);
  const status = calculateStatus(sidecarSet, pods, history.latest);
  const record = [...history.actions, ...recordStatus(sidecarSet, status)];
  const counts: Counts = {
    ...countsOf(status),
    maxUnavailable: maxUnavailableOf(strategy, totalOf(pods, claims)),
    used: usedBudget(pods, claims),
    down: downPods(sidecarSet, pods, DOWN_PODS_NAMED),
    ...(waves ? { waves: waves.summary } : {}),
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
  const { revisions, checks } = observation;
  const areAllUpdated = counts.updated >= counts.matched;
  const { latestRevision } = status;
  const still = standstillOf(sidecarSet, { areAllUpdated, latestRevision, pods, revisions, checks, now });
  if (still) {
    const decision = recordOnly(still.hold);
    return { ...decision, summary: stoppedBy(still, decision.summary), halt: still.halt, undo: still.undo };
  }

  const flips = planFlips(sidecarSet, pods, now);
  if (flips.length > 0) {
    const selected = flips.filter(({ kind }) => kind === "PatchPod").length;
    const summary: Summary = { ...NOTHING, ...counts, selected, hold: "flip" };
    return { actions: [...record, ...flips], status, summary, failing };
  }

  const shrinks = settings.InPlaceResize && isResizeServed ? planShrinks(pods) : [];
  if (shrinks.length > 0) {
    const summary: Summary = { ...NOTHING, ...counts, selected: shrinks.length, hold: "shrink" };
    return { actions: [...record, ...shrinks], status, summary, failing };
  }

  const isCondition = ({ kind }: Action) => kind === "PatchPodCondition";
  const unlessSkipped = (actions: readonly Action[]) =>
    settings.SkipUpgradableCondition ? actions.filter((action) => !isCondition(action)) : actions;
  const marks = context.areConditionsLeft ? [] : unlessSkipped(planMarks(sidecarSet, pods, now));
  if (areAllUpdated) {
    const finished = recordOnly("finished");
    return { ...finished, actions: [...finished.actions, ...marks] };
  }

  const batch = nextBatch(observation, scene, { now, latestRevision: history.latest.name, settings });
  const fields = immutableFields(sidecarSet, podsOf(lackingOf(batch)), observation.revisions);
  const summary = { ...counts, ...summarize(batch), ...replacedOf(batch, claims), immutableFields: fields };
  return { actions: [...record, ...marks, ...unlessSkipped(batch.actions)], status, summary, failing };
}

function stoppedBy({ isByMetrics, halt }: Standstill, summary: Summary): Summary {
  return isByMetrics ? { ...summary, stopped: halt } : summary;
}

type Counts = Pick<
  Summary,
  "matched" | "updated" | "ready" | "updatedReady" | "maxUnavailable" | "used" | "down" | "waves"
>;
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

/** Those that are replaced, where any are, differ in the same fields as those that stay. */
function lackingOf({ replaced, selection }: Batch) {
  return replaced.length > 0 ? replaced : selection.notUpgradable;
}

function replacedOf(
  { replaced, keptBack, selection, actions }: Batch,
  { replacement }: Claims,
): Pick<Summary, "replaced"> {
  if (replacement === undefined || replaced.length + selection.notUpgradable.length === 0) return {};
  const { stop, isInVain } = replacement;
  const selected = evictionsOf(actions).length;
  const why = stop === undefined ? {} : { stop, ...(isInVain ? { isInVain } : {}) };
  return { replaced: { waiting: replaced.length, selected, kept: keptBack, ...why } };
}

function orderOf({ turn, waiting }: Batch["selection"]): Pick<Summary, "order"> {
  const [order] = turn ? [...waiting].flatMap(({ pod }) => outOfTurn(pod, turn) ?? []) : [];
  return order === undefined ? {} : { order };
}

function ownersOf({ crowded, fullOwners }: Batch["selection"]): Pick<Plans, "owners"> {
  return crowded.length === 0 ? {} : { owners: { waiting: crowded.length, full: fullOwners } };
}

function holdOf({ selection, keptBack }: Batch): Hold {
  if (selection.blocked > 0) return "budget";
  if (selection.outOfTurn > 0) return "order";
  if (selection.crowded.length > 0) return "ownerBudget";
  if (keptBack > 0 && selection.selected.length === 0) return "evictionRefused";
  if (selection.ofLaterWaves > 0) return "wave";
  if (selection.kept > 0) return "partition";
  return selection.selected.length > 0 ? "none" : "nothingWaits";
}
