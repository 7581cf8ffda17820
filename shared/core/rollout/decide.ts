/** One pass's decision for one SidecarSet: from what the pass observed to a list of the reference's steps, as data. */
import type { ControllerRevision, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../../api/sidecarset.ts";
import { each, type Sequence, where } from "../../go/sequence.ts";
import type { Action } from "../actions.ts";
import { type FailingPod, failingPods } from "../pod/failing-pods.ts";
import { type PodState, uidOf } from "../pod/pod-state.ts";
import { podsOf } from "../pod/pod-states.ts";
import { keyOfWorkload } from "../pod/workload.ts";
import { refusedText } from "../refused-pods.ts";
import { planHistory } from "./history/history.ts";
import { askedHolds, type Hold } from "./hold.ts";
import { EFFECTS } from "./hold-effects.ts";
import type { PassTroubleHold } from "./pass-trouble.ts";
import { type EndedDisruption, endedDisruptions, waitingForBudgets } from "./rules/disruption-budgets/guard.ts";
import { planPutBacks } from "./rules/drain/drain.ts";
import { type Standstill, standstillOf } from "./rules/halt/standstill.ts";
import { waitingForOwners } from "./rules/owner-budget/owner-budget.ts";
import { type PullPlan, withoutPulls } from "./rules/pre-pull/pull-guard.ts";
import { lackingOf, replacedBy } from "./rules/replacement/replaced.ts";
import type { RestartPlan } from "./rules/restarts/restarts.ts";
import { checksNow, keptRecord, type WavesRecord } from "./rules/waves/standing.ts";
import { drainedElsewhere, maxUnavailableOf, totalOf, usedBudget } from "./select/budget.ts";
import { classify } from "./select/classify.ts";
import { allDownPods } from "./select/down-pods.ts";
import { insteadOfImages, type Observed, type Scene, type SceneContext, sceneOf } from "./select/observed-states.ts";
import { NOTHING_COUNTED, type Restarts, type Summary, saidByRules } from "./summary.ts";
import { immutableFields } from "./upgrade/immutable-fields.ts";
import { type Batch, nextBatch, planFlips, planMarks, planShrinks } from "./upgrade/plan-batch.ts";

/** All inputs of a decision. No field is optional, so every caller reaches the same decision as a pass. */
export interface Observation extends Observed {
  /** revisions that exist under a name that CreateRevision wanted */
  readonly taken: readonly ControllerRevision[];
}

export interface DecideContext extends SceneContext {
  readonly kruiseNamespace: string;
  /** true: outdated SidecarSetUpgradable conditions stay, as in OpenKruise; absent: passes correct them */
  readonly areConditionsLeft?: true;
}

const DOWN_PODS_NAMED = 3;

export interface Decision {
  /** actions in the order in which the pass runs them */
  readonly actions: readonly Action[];
  /** the status as observed, even if no write is needed */
  readonly status: SidecarSetStatus;
  readonly summary: Summary;
  /** all updated pods that cannot run */
  readonly failing: readonly FailingPod[];
  /** the reason why the rollout stops: failing pods, or an unreadable annotation; absent: it does not stop */
  readonly halt?: string;
  /** the undo, if the pass restores an earlier release because of the halt */
  readonly undo?: Standstill["undo"];
  /** the status of waves; absent: there are none */
  readonly waves?: WavesRecord;
  /** planned restarts of workloads; absent: restarts are not configured, or this decision plans none */
  readonly restarts?: RestartPlan | undefined;
  /** planned image pulls; absent: no image is pulled first, and no earlier pull is left */
  readonly pulls?: PullPlan | undefined;
  /** pods that are ready again but still registered with disruption budgets; absent: none */
  readonly ended?: readonly EndedDisruption[];
  /** uids of reserved pods that cannot be fenced, whose late patches count in addition to the plan; absent: none */
  readonly counted?: ReadonlySet<string>;
}

/**
 * Pure: the same observation and `now` give the same decision. No content of a pod makes it throw. @throws TypeError
 * for a spec that the API server would not have stored
 */
export function decide(observation: Observation, context: DecideContext): Decision {
  const scene = sceneOf(observation, context);
  const decision = decideOn(scene, observation, context);
  const waves = scene.waves?.record ?? keptRecord(observation.sidecarSet);
  const ended = endedDisruptions(observation.sidecarSet, scene.states, observation.disruptionBudgets);
  const { counted } = scene.budgetUse;
  const isLater = EFFECTS[decision.summary.hold].batch === "later";
  const pulls = decision.pulls ?? (observation.pulls && !isLater ? withoutPulls(observation.pulls) : undefined);
  return {
    ...decision,
    ...(pulls ? { pulls, actions: [...decision.actions, ...pulls.actions] } : {}),
    ...(waves ? { waves } : {}),
    ...(ended.length > 0 ? { ended } : {}),
    ...(counted ? { counted } : {}),
  };
}

function countsNow(
  { states: pods, budgetUse, waves }: Scene,
  sidecarSet: SidecarSet,
  status: SidecarSetStatus,
): Counts {
  const elsewhere = drainedElsewhere(pods, budgetUse);
  return {
    ...countsOf(status),
    maxUnavailable: maxUnavailableOf(sidecarSet.spec.updateStrategy, totalOf(pods, budgetUse)),
    used: usedBudget(pods, budgetUse) - elsewhere,
    ...(elsewhere > 0 ? { drainedElsewhere: elsewhere } : {}),
    ...allDownPods(sidecarSet, pods, { limit: DOWN_PODS_NAMED, gone: budgetUse.rules.replacement?.gone }),
    rules: saidByRules({ waves: waves?.summary }),
  };
}

function decideOn(scene: Scene, observation: Observation, context: DecideContext): Decision {
  const { now, kruiseNamespace, settings } = context;
  const { sidecarSet, isResizeServed, revisions } = observation;
  const { states: pods, budgetUse, waves } = scene;
  const history = planHistory(observation, pods, kruiseNamespace);
  const status = calculateStatus(sidecarSet, pods, history.latest);
  const record = [...history.actions, ...recordStatus(sidecarSet, status)];
  const counts = countsNow(scene, sidecarSet, status);
  const failing = failingPods(sidecarSet, pods);
  /** Restores of pods that depend neither on other writes nor on the hold of the rollout. */
  const putBacks = (others: readonly Action[], selected: Sequence<PodState>) =>
    planPutBacks(sidecarSet, pods, writtenTo(others, selected), budgetUse.passedOver);
  const recordOnly = (hold: Hold, selected = 0): Decision => ({
    actions: [...record, ...putBacks([], [])],
    status,
    summary: { ...NOTHING_COUNTED, ...counts, ...leftBeside(observation, scene, counts), selected, hold },
    failing,
  });

  /** The actions of one hold. A running drain continues beside them. */
  const only = (hold: Hold, own: readonly Action[], selected: number): Decision => ({
    ...recordOnly(hold, selected),
    actions: [
      ...record,
      ...own,
      ...putBacks(
        own,
        where(pods, ({ isUpdated }) => !isUpdated),
      ),
    ],
  });

  const [asked] = askedHolds(sidecarSet);
  const { latestRevision } = status;
  const checks = checksNow(sidecarSet, observation.checks, counts.rules.waves);
  const areAllUpdated = counts.updated >= counts.matched;
  const still = standstillOf(sidecarSet, { areAllUpdated, latestRevision, pods, revisions, checks, now });
  if (still) {
    const decision = recordOnly(still.hold);
    return { ...decision, summary: stoppedBy(still, decision.summary, asked), halt: still.halt, undo: still.undo };
  }
  if (asked) return recordOnly(asked);

  const flips = planFlips(sidecarSet, pods, now, budgetUse.passedOver);
  if (flips.length > 0) return only("flip", flips, flips.filter(({ kind }) => kind === "PatchPod").length);

  const shrinks = settings.InPlaceResize && isResizeServed ? planShrinks(pods, budgetUse.passedOver) : [];
  if (shrinks.length > 0) return only("shrink", shrinks, shrinks.length);

  const isCondition = ({ kind }: Action) => kind === "PatchPodCondition";
  const unlessSkipped = (actions: readonly Action[]) =>
    settings.SkipUpgradableCondition ? actions.filter((action) => !isCondition(action)) : actions;
  const marks = context.areConditionsLeft ? [] : unlessSkipped(planMarks(sidecarSet, pods, now));
  if (isOver(areAllUpdated, budgetUse)) {
    const finished = recordOnly(holdOfAll(counts));
    return { ...finished, actions: [...finished.actions, ...marks] };
  }

  const batch = nextBatch(observation, scene, { now, latestRevision: history.latest.name, settings });
  const fields = immutableFields(sidecarSet, podsOf(lackingOf(batch)), observation.revisions);
  const hold = holdNow(batch, areAllUpdated, counts);
  const isWaveOpen = waves?.summary.holder?.stage === "updating";
  const otherwise = { hold, isWaveOpen, isNoneSelected: batch.selection.selected.length === 0 };
  const restarted = restartedBy(batch.restarts, otherwise);
  const said = saidOfBatch(batch, budgetUse);
  const rules = saidByRules({ ...counts.rules, ...said, restarts: restarted.facts });
  const refused = refusedWrites(scene, sidecarSet, batch.selection);
  const held = { hold: restarted.hold ?? hold, immutableFields: fields, rules };
  const summary: Summary = { ...counts, ...summarize(batch), ...refused, ...held };
  const { pulls } = batch.selection;
  const back = putBacks([], batch.selection.selected);
  const actions = [...record, ...back, ...marks, ...unlessSkipped(batch.actions)];
  return { actions, status, summary, failing, restarts: batch.restarts, pulls };
}

/** The uids of pods that are selected or written to. */
function writtenTo(actions: readonly Action[], selected: Sequence<PodState>): ReadonlySet<string> {
  const written = actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.uid] : []));
  return new Set([...written, ...Array.from(selected, ({ pod }) => uidOf(pod))]);
}

type LeftBeside = Pick<Summary, "inFlight" | "notUpgradable" | "immutableFields" | "rules">;

/** Number of old pods for the status, if no pod is selected. If all pods are updated, it is 0. */
function leftBeside(
  { sidecarSet, revisions }: Observation,
  { states, budgetUse }: Scene,
  { updated, matched, rules }: Counts,
): Partial<LeftBeside> {
  if (updated >= matched) return {};
  const replacement = budgetUse.rules.replacement?.plan;
  const notUpgradable: PodState[] = [];
  const replaced: PodState[] = [];
  let inFlight = 0;
  each(states, (state) => {
    const podClass = classify(state, sidecarSet, replacement);
    if (podClass === "inFlight") inFlight++;
    else if (podClass === "notUpgradable") notUpgradable.push(state);
    else if (podClass === "waiting" && replacement?.replaces(state)) replaced.push(state);
  });
  const left = { replaced, keptBack: 0, selection: { notUpgradable }, actions: [] };
  return {
    inFlight,
    notUpgradable: notUpgradable.length,
    immutableFields: immutableFields(sidecarSet, podsOf(lackingOf(left)), revisions),
    rules: saidByRules({ ...rules, replacement: replacedBy(left, replacement) }),
  };
}

/** The hold of a rollout after all pods are updated. */
function holdOfAll({ rules: { waves } }: Counts): "wave" | "finished" {
  return waves?.isProving ? "wave" : "finished";
}

function stoppedBy({ isByMetrics, halt, hasWayBack }: Standstill, summary: Summary, asked: Summary["asked"]): Summary {
  const facts = { ...(hasWayBack === undefined ? {} : { hasWayBack }), ...(isByMetrics ? { stopped: halt } : {}) };
  return { ...summary, ...(asked ? { asked } : {}), rules: { ...summary.rules, halt: facts } };
}

/** The hold that would apply without restarts. */
interface Otherwise {
  readonly hold: Hold;
  readonly isNoneSelected: boolean;
  /** true: the wave that others wait for still has pods to update, so more than a later wave is left */
  readonly isWaveOpen: boolean;
}

/** The result of restarts; undefined: no workload is restarted, waits, or must stay as it is. */
function restartedBy(
  plan: RestartPlan | undefined,
  { hold, isNoneSelected, isWaveOpen }: Otherwise,
): { readonly facts?: Restarts; readonly hold?: Hold } {
  if (plan === undefined) return {};
  const { open, actions, waiting, held, stuck, aside, refusal } = plan;
  const underWay = [...open, ...actions.map(({ workload }) => workload)].map(keyOfWorkload);
  const all = [...(refusal === undefined ? [] : [refusal]), ...[...held].map((one) => one.join(": "))];
  if (underWay.length + waiting + all.length === 0) return {};
  const isAsideOnly = underWay.length + waiting + all.length === aside;
  // A workload's own state also blocks other workloads. Unlike a partition, users can change it.
  const isStuckBy = (inTheWay: number) => isNoneSelected && inTheWay > 0 && (waiting === 0 || refusal !== undefined);
  const { yieldsTo } = EFFECTS[hold];
  const areThere = {
    anyRestart: true,
    waitingRestart: waiting > 0,
    keptRestart: isWaveOpen && isStuckBy(all.length - aside),
    stuckRestart: isStuckBy(stuck),
  };
  const isInPlay = underWay.length > 0 || (yieldsTo !== undefined && areThere[yieldsTo]);
  return { facts: { underWay, waiting, held: all }, ...(isInPlay && !isAsideOnly ? { hold: "restart" } : {}) };
}

/** Limit of tries in a pass that has nothing else to do. */
const TIMES_OF_A_PASS = 4;

/** The refused writes of the next pods. */
function refusedWrites(scene: Scene, sidecarSet: SidecarSet, { line }: Batch["selection"]): Pick<Summary, "trouble"> {
  const { refused: known } = scene;
  if (known.length === 0) return {};
  const uids = new Set(Array.from(line, ({ pod }) => pod.metadata?.uid));
  const refused = known.filter(({ uid }) => uids.has(uid));
  const isRefused = ({ metadata }: Pod) => refused.some(({ uid }) => uid === metadata?.uid);
  const text = refusedText(refused);
  if (text === undefined) return {};
  const pods = where(line, ({ pod }) => isRefused(pod)).map(({ pod }) => pod);
  const instead = insteadOfImages(scene, sidecarSet, pods);
  const isLasting = refused.some(({ times }) => times > TIMES_OF_A_PASS);
  return { trouble: { text: `${text}${instead}`, isLasting, ...(instead === "" ? {} : { instead }) } };
}

type Counts = Pick<Summary, "matched" | "updated" | "ready" | "updatedReady" | "maxUnavailable" | "used"> &
  Pick<Summary, "drainedElsewhere" | "down" | "leftDown" | "rules">;
type Plans = Omit<Summary, keyof Counts>;

function recordStatus(sidecarSet: SidecarSet, status: SidecarSetStatus): readonly Action[] {
  if (!isStatusChanged(sidecarSet.status, status)) return [];
  return [{ kind: "PatchStatus", sidecarSet: sidecarSet.metadata?.name ?? "", status }];
}

function countsOf({ matchedPods = 0, updatedPods = 0, readyPods = 0, updatedReadyPods = 0 }: SidecarSetStatus) {
  return { matched: matchedPods, updated: updatedPods, ready: readyPods, updatedReady: updatedReadyPods };
}

function summarize(batch: Batch): Omit<Plans, "immutableFields" | "hold" | "rules"> {
  const { selection, beyondRoom, problems } = batch;
  return {
    waiting: selection.waiting.length,
    notUpgradable: selection.notUpgradable.length,
    inFlight: selection.inFlight,
    ...(selection.notSelected === 0 ? {} : { notSelected: selection.notSelected }),
    partition: selection.kept,
    selected: selection.selected.length,
    ...(beyondRoom === 0 ? {} : { beyondRoom }),
    problems,
  };
}

function saidOfBatch(batch: Batch, budgetUse: Scene["budgetUse"]) {
  const { selection, draining: drain, ordinals } = batch;
  return {
    drain,
    prePull: selection.pulls?.summary,
    ordinals,
    ownerBudget: waitingForOwners(selection),
    disruptionBudgets: waitingForBudgets(selection),
    replacement: replacedBy(batch, budgetUse.rules.replacement?.plan),
  };
}

function isOver(areAllUpdated: boolean, { rules: { restarts } }: Scene["budgetUse"]): boolean {
  return areAllUpdated && restarts === undefined;
}

function holdNow(batch: Batch, areAllUpdated: boolean, counts: Counts): Hold {
  return areAllUpdated ? holdOfAll(counts) : holdOf(batch);
}

/** Holds that are named elsewhere. The compiler refuses a hold that neither such a place nor HELD_BY names. */
type NamedElsewhere =
  | ReturnType<typeof askedHolds>[number]
  | ReturnType<typeof holdOfAll>
  | Standstill["hold"]
  | PassTroubleHold
  | ("flip" | "shrink" | "gate" | "gateDown" | "metrics" | "restart" | "nothingWaits" | "none");
type Unnamed = Exclude<Hold, NamedElsewhere | (typeof HELD_BY)[number][0]>;

function holdOf(batch: Batch): [Unnamed] extends [never] ? Hold : Readonly<Record<Unnamed, "has no row in HELD_BY">> {
  const isNoneSelected = batch.selection.selected.length === 0;
  return HELD_BY.find(([, isHeld]) => isHeld(batch, isNoneSelected))?.[0] ?? (isNoneSelected ? "nothingWaits" : "none");
}

/** Conditions for holds. The first one that applies names the hold. */
const HELD_BY = [
  ["drain", ({ isDraining }) => isDraining],
  // No pod recovers before the API server accepts a write.
  ["refused", ({ areUsersRefused }, isNoneSelected) => isNoneSelected && areUsersRefused],
  ["budget", ({ selection }) => selection.blocked > 0],
  ["refused", ({ passedOver }, isNoneSelected) => isNoneSelected && passedOver > 0],
  ["prePull", ({ selection }, isNoneSelected) => isNoneSelected && (selection.pulls?.summary?.waiting ?? 0) > 0],
  // The next pod may itself be held; the rest then wait for the same budget.
  ["disruptionBudget", ({ selection }, isNoneSelected) => isNoneSelected && selection.held.length > 0],
  ["order", ({ ordinals }) => ordinals !== undefined],
  ["ownerBudget", ({ selection }) => selection.crowded.length > 0],
  ["disruptionBudget", ({ selection }) => selection.held.length > 0],
  ["evictionRefused", ({ keptBack }, isNoneSelected) => isNoneSelected && keptBack > 0],
  ["leftAlone", ({ leftAlone }, isNoneSelected) => isNoneSelected && leftAlone > 0],
  ["inFlight", ({ selection }, isNoneSelected) => isNoneSelected && selection.inFlight > 0],
  ["wave", ({ selection }) => selection.ofLaterWaves > 0],
  ["notSelected", ({ selection }, isNoneSelected) => isNoneSelected && selection.notSelected > 0],
  ["partition", ({ selection }) => selection.kept > 0],
] as const satisfies readonly (readonly [Hold, (batch: Batch, isNoneSelected: boolean) => boolean])[];

// Counts the status of a SidecarSet from the matched pods as observed, before this pass acts.

/** The newest ControllerRevision and the number of name collisions so far. */
interface LatestRevision {
  readonly name: string;
  readonly collisionCount: number;
}

/** The counts of pods. Like the API, it leaves out optional counts that are zero. */
export function calculateStatus(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  latest: LatestRevision,
): SidecarSetStatus {
  let [updatedPods, readyPods, updatedReadyPods] = [0, 0, 0];
  each(pods, ({ isUpdated, isConsistent, isReady }) => {
    if (isUpdated) updatedPods++;
    if (isConsistent && isReady) readyPods++;
    if (isUpdated && isConsistent && isReady) updatedReadyPods++;
  });
  const generation = sidecarSet.metadata?.generation ?? 0;
  return {
    ...(generation === 0 ? {} : { observedGeneration: generation }),
    matchedPods: pods.length,
    updatedPods,
    readyPods,
    ...(updatedReadyPods === 0 ? {} : { updatedReadyPods }),
    ...(latest.name === "" ? {} : { latestRevision: latest.name }),
    collisionCount: latest.collisionCount,
  };
}

/** True if the stored status differs. A change of observedGeneration counts only if the number grows. */
export function isStatusChanged(stored: SidecarSetStatus | undefined, wanted: SidecarSetStatus): boolean {
  if ((wanted.observedGeneration ?? 0) > (stored?.observedGeneration ?? 0)) return true;
  if (stored?.collisionCount !== wanted.collisionCount) return true;
  if ((stored?.latestRevision ?? "") !== (wanted.latestRevision ?? "")) return true;
  const counts = ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"] as const;
  return counts.some((count) => (stored?.[count] ?? 0) !== (wanted[count] ?? 0));
}
