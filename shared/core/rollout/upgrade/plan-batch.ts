/** The actions on pods in one round of a rollout: the next batch, or the end of hot upgrades. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf, each, type Sequence, where } from "../../../go/sequence.ts";
import type { Action, PodPurpose, ResourceChange } from "../../actions.ts";
import { hasOtherValues, type PodState, uidOf } from "../../pod/pod-state.ts";
import { isHotUpgrade } from "../../pod/sidecar-containers.ts";
import { isPassedOver, MOST_OF_NAMESPACE, type PassedOver } from "../../refused-pods.ts";
import type { RolloutSettings } from "../rollout-settings.ts";
import type { Disruption } from "../rules/disruption-budgets/guard.ts";
import { type DrainWait, drainingOf, isDrainedForAnother, withDrain } from "../rules/drain/drain.ts";
import { haltRoom } from "../rules/halt/standstill.ts";
import { type TurnInTheWay, waitingForTurn } from "../rules/ordinals/ordinal-turn.ts";
import { eviction, planReplacement, type ReplacementPlan } from "../rules/replacement/plan-replacement.ts";
import { resizeMark } from "../rules/resize/resize.ts";
import { planRestarts, type RestartPlan } from "../rules/restarts/restarts.ts";
import { type BudgetUse, goesDown, usesBudget } from "../select/budget.ts";
import type { Observed, Scene } from "../select/observed-states.ts";
import { type Selection, selectPods } from "../select/select.ts";
import type { Draining, PodProblem } from "../summary.ts";
import { canFlip } from "./hot-slot.ts";
import { planFlip, planUpgrade } from "./plan-upgrade.ts";
import {
  flipEvent,
  isSaidNotUpgradable,
  notUpgradableEvent,
  type PodPlan,
  patchPod,
  planCondition,
  preconditionOf,
} from "./pod-change.ts";
import { recordWithoutImage, type UpgradeFacts } from "./record-upgrade.ts";

export interface Batch {
  readonly actions: readonly Action[];
  readonly selection: Selection;
  /** number of selected pods without room in the ledger: nothing is planned for them */
  readonly beyondRoom: number;
  /** waiting pods that are replaced */
  readonly replaced: readonly PodState[];
  /** number of pods that are not evicted now, because a related eviction was refused */
  readonly keptBack: number;
  /** number of pods that are skipped now, because writes to them, or to their namespace, were refused */
  readonly passedOver: number;
  /** all pods that use the budget are among these */
  readonly areUsersRefused: boolean;
  /** number of selected pods that cannot be handled */
  readonly leftAlone: number;
  readonly problems: readonly PodProblem[];
  /** undefined: no pod of a StatefulSet waits for its turn */
  readonly ordinals: TurnInTheWay | undefined;
  /** absent: no pod is drained */
  readonly draining?: Draining;
  /** the selected pods are drained now, or restored */
  readonly isDraining: boolean;
  /** absent: no restarts of workloads are configured */
  readonly restarts?: RestartPlan;
}

export const OTHER_VALUES =
  "somebody else changed values of its sidecars in its annotations: its next update writes them again";

type StepPlan = PodPlan | DrainWait | ReplacementPlan;

interface Planned {
  readonly actions: readonly Action[];
  readonly problems: readonly PodProblem[];
}

/** Empties the old slots of completed hot upgrades, in all pods and whatever the budget is. */
export function planFlips(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  now: string,
  passedOver?: PassedOver,
): readonly Action[] {
  if (!sidecarSet.spec.containers?.some(isHotUpgrade)) return [];
  return where(pods, ({ pod }) => canFlip(pod, sidecarSet) && hasTurn(pod, passedOver)).flatMap(({ pod }) => [
    ...patchPod(pod, planFlip(pod, sidecarSet, now), "flip", false),
    flipEvent(pod),
  ]);
}

/** Gives sidecars that run their new image their smaller resources. */
export function planShrinks(pods: Sequence<PodState>, passedOver?: PassedOver): readonly Action[] {
  const isDue = ({ isUpdated, resize }: PodState) => isUpdated && resize?.step === "resize";
  return where(pods, (state) => isDue(state) && hasTurn(state.pod, passedOver)).flatMap(({ pod, resize, isReady }) =>
    patchPod(pod, resizing(resize?.changes ?? []), "resize", isReady),
  );
}

/** False while writes to the pod are refused: one pod must not hold up all others. */
function hasTurn({ metadata = {} }: Pod, passedOver: PassedOver | undefined): boolean {
  return passedOver === undefined || !isPassedOver(passedOver, metadata);
}

function resizing(resources: readonly ResourceChange[]): PodPlan {
  return { kind: "planned", images: [], annotations: {}, resources };
}

/** Corrects an outdated condition of updated pods: the updating pass stopped, or an older write came late. */
export function planMarks(sidecarSet: SidecarSet, pods: Sequence<PodState>, now: string): readonly Action[] {
  const name = sidecarSet.metadata?.name ?? "";
  return where(pods, (state) => state.isUpdated && state.isDoubted === true)
    .filter(({ pod }) => isSaidNotUpgradable(pod, name))
    .flatMap(({ pod }) => mark(pod, sidecarSet, true, now).actions);
}

/** The next write to a selected pod. */
function planStep(state: PodState, sidecarSet: SidecarSet, facts: UpgradeFacts): PodPlan | DrainWait {
  const { pod, resize } = state;
  if (resize?.step === "begin") return { kind: "planned", images: [], annotations: resizeMark(pod, sidecarSet) };
  if (resize?.step === "resize") return resizing(resize.changes);
  const plan = planUpgrade(pod, sidecarSet, facts);
  if (plan.kind !== "planned" || !resize) return withDrain(state, sidecarSet, plan, facts.now);
  const annotations = { ...plan.annotations, ...resizedRecords(pod, sidecarSet, facts) };
  return withDrain(state, sidecarSet, { ...plan, annotations }, facts.now);
}

/** Both hashes become the SidecarSet's, because no field differs any more. */
function resizedRecords(pod: Pod, sidecarSet: SidecarSet, facts: UpgradeFacts) {
  return { ...resizeMark(pod, sidecarSet), ...recordWithoutImage(pod, sidecarSet, facts) };
}

/** The batch as passes plan it: within the room of the ledger and the halt. */
export function nextBatch(
  { sidecarSet, reserved, restarting }: Observed,
  { states, budgetUse, waves }: Scene,
  { settings, ...facts }: UpgradeFacts & { readonly settings: RolloutSettings },
): Batch {
  const room = Math.min(reserved.room, haltRoom(sidecarSet, states, budgetUse));
  const batch = planBatch(sidecarSet, states, budgetUse, {
    ...facts,
    room,
    lines: reserved.room,
    waves,
    withNatives: settings.NativeSidecarInPlaceUpdate,
  });
  const { selection, actions } = batch;
  const beside = { sidecarSet, states, budgetUse, selection, waves, hasRoom: room > 0, now: facts.now };
  // Few SidecarSets use restarts, so functions load them on demand (infra/aws/deferred.ts).
  const restarts = restarting && planRestarts(restarting, beside);
  return restarts ? { ...batch, restarts, actions: [...actions, ...restarts.actions] } : batch;
}

interface BatchFacts extends UpgradeFacts {
  /** number of unreserved pods that are planned; the others are only selected */
  readonly room?: number | undefined;
  /** number of lines that fit into the ledger: one for each such pod, and a second one for an eviction */
  readonly lines?: number | undefined;
  readonly waves?: Scene["waves"] | undefined;
}

export function planBatch(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  budgetUse: BudgetUse,
  { room = Number.POSITIVE_INFINITY, lines = Number.POSITIVE_INFINITY, waves, ...facts }: BatchFacts,
): Batch {
  const plans = new Map<PodState, StepPlan>();
  const replacement = budgetUse.rules.replacement?.plan;
  const isReplaced = (state: PodState) => replacement?.replaces(state) === true;
  const planOf = (state: PodState) =>
    replacement?.replaces(state)
      ? planReplacement(state.pod, replacement.placeOf, budgetUse, facts.now)
      : planStep(state, sidecarSet, facts);
  const left = { pods: room, lines };
  const isRestarting = (budgetUse.rules.restarts ?? []).length > 0;
  const withoutTurn = new Set<string>();
  const isKept = keptByResizes(pods);
  const mayTake = (state: PodState) => {
    if (isKept(state)) return false;
    // An eviction is not a patch, so refused patches do not stop it.
    if (replacement?.isForbidden(state.pod) || hasTurn(state.pod, budgetUse.passedOver)) return canTake(state);
    withoutTurn.add(state.pod.metadata?.uid ?? "");
    return false;
  };
  const canTake = (state: PodState) => {
    if (isRestarting) return false;
    if (isDrainedForAnother(state, sidecarSet)) {
      plans.set(state, { kind: "draining", seconds: 0 });
      return false;
    }
    const isHeld = budgetUse.reserved.has(state.pod.metadata?.uid ?? "");
    if (!isHeld && Math.min(left.pods, left.lines) <= 0) return true;
    const plan = planOf(state);
    plans.set(state, plan);
    if (!isHeld) take(left, plan);
    return isTaken(plan);
  };
  const selection = selectPods(sidecarSet, pods, budgetUse, { canTake: mayTake, waves });
  const { selected, notUpgradable, waiting } = selection;
  const replaced = replacement === undefined ? [] : where(waiting, isReplaced);
  const upgrades = selected.flatMap((state) => {
    const plan = plans.get(state);
    const disruption = selection.disruptions.get(state.pod.metadata?.uid ?? "");
    const turn = { now: facts.now, disruption, usesBudget: goesDown(state, budgetUse) };
    return plan ? [upgrade(state.pod, plan, sidecarSet, turn)] : [];
  });
  const steps = [
    ...marksOf(notUpgradable, sidecarSet, facts.now),
    ...marksOf(withoutThose(replaced, selected), sidecarSet, facts.now),
    { actions: notUpgradableEvent(sidecarSet, notUpgradable.length), problems: [] },
    ...upgrades,
  ];
  const refused = [...plans].flatMap(([{ pod }, plan]) =>
    plan.kind === "refused" ? [problem(pod, plan.message)] : [],
  );
  const draining = drainingOf(plans.values());
  const isWaiting = (state: PodState) => plans.get(state)?.kind === "draining";
  return {
    actions: steps.flatMap(({ actions }) => actions),
    ...(draining ? { draining } : {}),
    isDraining: draining !== undefined && selected.every(isWaiting),
    selection,
    beyondRoom: selected.length - upgrades.length,
    replaced,
    passedOver: withoutTurn.size,
    areUsersRefused: areAllUsers(withoutTurn, pods, budgetUse, selection.used),
    keptBack: [...plans.values()].filter(({ kind }) => kind === "kept").length,
    leftAlone: refused.length,
    ordinals: waitingForTurn(selection, plans, sidecarSet, facts.now),
    problems: [...steps.flatMap(({ problems }) => problems), ...refused, ...hindrancesOf(pods, sidecarSet)],
  };
}

/** True for a pod that would begin in a namespace whose nodes do not do as many resizes as a pass tries. */
function keptByResizes(pods: Sequence<PodState>): (state: PodState) => boolean {
  const isStuck = ({ resize }: PodState) => resize?.step === "wait" && resize.hindrance !== undefined;
  const stuck = Map.groupBy(where(pods, isStuck), ({ pod }) => pod.metadata?.namespace);
  return ({ pod, resize }) =>
    resize?.step === "begin" && (stuck.get(pod.metadata?.namespace) ?? []).length >= MOST_OF_NAMESPACE;
}

function hindrancesOf(pods: Sequence<PodState>, sidecarSet: SidecarSet): readonly PodProblem[] {
  const hindered = where(pods, (state) => hindranceOf(state) !== undefined);
  const foreign = where(pods, ({ pod }) => hasOtherValues(pod, sidecarSet));
  return [
    ...hindered.map((state) => problem(state.pod, hindranceOf(state) ?? "")),
    ...foreign.map(({ pod }) => problem(pod, OTHER_VALUES)),
  ];
}

/** True when all `used` pods that use budget are among these; false when none does. */
function areAllUsers(uids: ReadonlySet<string>, pods: Sequence<PodState>, budgetUse: BudgetUse, used: number): boolean {
  const isOne = (state: PodState) => uids.has(uidOf(state.pod)) && usesBudget(state, budgetUse);
  return uids.size > 0 && used > 0 && used === countOf(pods, isOne);
}

function isTaken({ kind }: StepPlan): boolean {
  return kind === "planned" || kind === "evicted" || kind === "draining";
}

function take(left: { pods: number; lines: number }, plan: StepPlan): void {
  if (!isTaken(plan)) return;
  left.pods--;
  left.lines -= plan.kind === "evicted" ? 2 : 1;
}

function withoutThose(states: readonly PodState[], others: readonly PodState[]): readonly PodState[] {
  const uids = new Set(others.map(({ pod }) => pod.metadata?.uid));
  return states.filter(({ pod }) => !uids.has(pod.metadata?.uid));
}

function hindranceOf({ native, resize, isUpdated }: PodState): string | undefined {
  return (isUpdated ? undefined : native?.hindrance) ?? resize?.hindrance;
}

interface Turn {
  readonly now: string;
  readonly disruption: Disruption | undefined;
  readonly usesBudget: boolean;
}

function upgrade(pod: Pod, plan: StepPlan, sidecarSet: SidecarSet, { now, disruption, usesBudget }: Turn): Planned {
  if (plan.kind === "evicted") return { actions: [eviction(pod, plan.departure, usesBudget)], problems: [] };
  if (plan.kind === "kept" || plan.kind === "left" || plan.kind === "draining") return { actions: [], problems: [] };
  const { actions, problems } = mark(pod, sidecarSet, true, now);
  const patches = patchPod(pod, plan, purposeOf(plan), usesBudget);
  return {
    actions: [...(disruption ? patches.map((patch) => ({ ...patch, disruption })) : patches), ...actions],
    problems,
  };
}

function purposeOf(plan: PodPlan): PodPurpose {
  if (plan.kind !== "planned") return "upgrade";
  return plan.resources ? "resize" : plan.isDrain ? "drain" : "upgrade";
}

/** The condition updates for pods that need one. */
function marksOf(notUpgradable: Sequence<PodState>, sidecarSet: SidecarSet, now: string): readonly Planned[] {
  const marks: Planned[] = [];
  each(notUpgradable, ({ pod }) => {
    const { actions, problems } = mark(pod, sidecarSet, false, now);
    if (actions.length + problems.length > 0) marks.push({ actions, problems });
  });
  return marks;
}

/** The update of the condition, if it has to change. */
function mark(pod: Pod, sidecarSet: SidecarSet, isUpgradable: boolean, now: string): Planned {
  const plan = planCondition(pod, { sidecarSet: sidecarSet.metadata?.name ?? "", isUpgradable, now });
  switch (plan.kind) {
    case "unchanged":
      return { actions: [], problems: [] };
    case "refused":
      return { actions: [], problems: [problem(pod, plan.message)] };
    case "changed": {
      const { condition } = plan;
      const conditions = pod.status?.conditions ?? [];
      return {
        actions: [{ kind: "PatchPodCondition", pod: preconditionOf(pod), conditions, condition }],
        problems: [],
      };
    }
    default:
      return plan satisfies never;
  }
}

function problem({ metadata }: Pod, message: string): PodProblem {
  return { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "", message };
}
