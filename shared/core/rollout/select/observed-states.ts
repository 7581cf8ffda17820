/** The states of all pods, from the whole observation of a pass. No other code makes states from an observation. */
import type { ControllerRevision, Labels, Pod } from "../../../api/kubernetes.ts";
import { REPLACE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf, type Sequence, where } from "../../../go/sequence.ts";
import { isInjected, podName } from "../../pod/is-matched.ts";
import { isDownWithOtherValues, type PodState, podStateOf, uidOf } from "../../pod/pod-state.ts";
import { matchedStates } from "../../pod/pod-states.ts";
import { evictsMissed, replacesNotUpgradable, whyNotRecreated } from "../../pod/replaced.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { forbiddenPods, type RefusedPod } from "../../refused-pods.ts";
import type { RolloutSettings } from "../rollout-settings.ts";
import type { CheckRecord } from "../rules/checks/check-records.ts";
import type { DisruptionBudget } from "../rules/disruption-budgets/disruption-budget.ts";
import { downBeside } from "../rules/ordinals/ordinal-turn.ts";
import type { PullFacts } from "../rules/pre-pull/pull-facts.ts";
import { awaitedOf } from "../rules/replacement/missing-pods.ts";
import { replacementOf } from "../rules/replacement/replacement.ts";
import { isResizable, withResize } from "../rules/resize/resize.ts";
import { openRestarts, owedRestarts, type Restarting } from "../rules/restarts/workload-object.ts";
import { type WavesNow, wavesNow } from "../rules/waves/standing.ts";
import type { BudgetUse, RuleUse } from "./budget.ts";
import { classify } from "./classify.ts";
import type { Refused, Reserved } from "./reserved.ts";

/** The observations, beside the pods, on which the states of pods depend. */
export interface Surroundings {
  /** v1beta1, as read at the beginning of the pass */
  readonly sidecarSet: SidecarSet;
  /** ControllerRevisions of the kruise namespace, by label kruise.io/sidecarset-name */
  readonly revisions: readonly ControllerRevision[];
  /** versions of kubelets by node; empty if not needed: native sidecars are up to date, or keep their image */
  readonly kubelets: ReadonlyMap<string, string>;
  /** true: the API server serves pods/resize; false also if not needed */
  readonly isResizeServed: boolean;
  /** all disruption budgets with gate RespectDisruptionBudgets; empty without it */
  readonly disruptionBudgets: readonly DisruptionBudget[];
}

export interface Observed extends Surroundings {
  /** pods selected by spec.selector and namespaceSelector, namespaces sorted, each reduced by `projectPod` */
  readonly pods: Sequence<Pod>;
  readonly reserved: Reserved;
  /** the labels that waves read, by namespace; empty without waves */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  /** results of metric checks in the ledger; empty: none was evaluated */
  readonly checks: readonly CheckRecord[];
  /** facts about restarts; absent: no workload is restarted */
  readonly restarting?: Restarting | undefined;
  /** facts about pulls; absent: no image is pulled before pods are updated, now or earlier */
  readonly pulls?: PullFacts | undefined;
}

/** Returns a function that finds the state of a pod. `now`: as in `isConsistent`. */
export function stateReader(
  { sidecarSet, revisions, kubelets, isResizeServed }: Omit<Surroundings, "disruptionBudgets">,
  { NativeSidecarInPlaceUpdate, InPlaceResize }: RolloutSettings,
  now?: string,
): (pod: Pod) => PodState {
  const canResize = (pod: Pod) => isResizable(sidecarSet, pod, revisions);
  const known = NativeSidecarInPlaceUpdate ? kubelets : undefined;
  return (pod) => {
    const state = podStateOf(pod, sidecarSet, known, now);
    return InPlaceResize && isResizeServed ? withResize(state, sidecarSet, canResize) : state;
  };
}

/** The pods of a rollout, and the used part of its budget. */
export interface Scene {
  readonly states: Sequence<PodState>;
  readonly budgetUse: BudgetUse;
  /** progress of the waves; absent: there are none */
  readonly waves?: WavesNow;
  /** outdated pods whose writes were refused */
  readonly refused: readonly RefusedPod[];
}

export interface SceneContext {
  /** the present time: RFC3339, whole seconds, UTC */
  readonly now: string;
  readonly settings: RolloutSettings;
  /** the rules to use; absent: all; empty: OpenKruise's behaviour alone */
  readonly rules?: readonly Rule[];
}

export function sceneOf(observation: Observed, { settings, now, rules = RULES }: SceneContext): Scene {
  const { sidecarSet, pods, reserved } = observation;
  const isRefused = refusedReader(reserved.refused);
  const isResizeRefused = (state: PodState) => state.resize?.step === "resize" && isRefused(state);
  // Pods with changing resources and drained pods are being updated too.
  const isReservedNow = (state: PodState) =>
    (state.resize?.isUnderWay === true && !isResizeRefused(state)) ||
    (state.drain !== undefined && !reserved.refused.passedOver.takenBack.has(uidOf(state.pod))) ||
    isDownWithOtherValues(state, sidecarSet) ||
    (reserved.uids.size > 0 && reserved.uids.has(uidOf(state.pod)));
  const read = stateReader(observation, settings, now);
  const withRefusal = (state: PodState) =>
    state.resize && state.isUpdated && isResizeRefused(state)
      ? { ...state, resize: { ...state.resize, isFree: true } }
      : state;
  const states = matchedStates(pods, sidecarSet, (pod) => withRefusal(read(pod)), isReservedNow);
  const refused = refusedOf(reserved.refused, states);
  const found = lookBy(rules, { ...observation, states, refused, now });
  const budgetUse: BudgetUse = {
    reserved: new Set(where(states, (state) => state.isReservedNow === true).map(({ pod }) => uidOf(pod))),
    StrictMaxUnavailable: settings.StrictMaxUnavailable,
    // Drained pods may be from a time with a larger budget.
    isReservedForThis: reserved.areForThis && countOf(states, ({ drain }) => drain !== undefined) === 0,
    passedOver: reserved.refused.passedOver,
    ...countedUse(observation, states, found),
    rules: found,
  };
  const { waves } = found;
  return { states, budgetUse, refused, ...(waves ? { waves } : {}) };
}

/** True for a pod whose last write was refused, whether it waits or is tried again. Its resources have not changed. */
function refusedReader({ passedOver: { uids, due } }: Refused): (state: PodState) => boolean {
  return ({ pod }) => uids.has(uidOf(pod)) || due.has(uidOf(pod));
}

function refusedOf({ named }: Refused, states: Sequence<PodState>): readonly RefusedPod[] {
  if (named.length === 0) return [];
  const uids = new Set(where(states, ({ isUpdated }) => !isUpdated).map(({ pod }) => uidOf(pod)));
  return named.filter(({ uid }) => uids.has(uid));
}

/**
 * The reserved pods that cannot be fenced, if each of them is waiting: only then budget and partition have room for a
 * late patch. Empty when pods follow ordinals, because such a pod may be out of turn.
 */
function countedUse(
  { sidecarSet, reserved: { unfenced } }: Observed,
  states: Sequence<PodState>,
  { ordinals }: Partial<Findings>,
): Pick<BudgetUse, "counted"> {
  if (unfenced.size === 0 || ordinals !== undefined) return {};
  const isCounted = (state: PodState) => unfenced.has(uidOf(state.pod)) && classify(state, sidecarSet) === "waiting";
  return countOf(states, isCounted) === unfenced.size ? { counted: unfenced } : {};
}

/** The results of the rules. */
interface Findings extends RuleUse {
  readonly waves: WavesNow;
}

interface ObservedByRules extends Observed {
  readonly states: Sequence<PodState>;
  readonly refused: readonly RefusedPod[];
  /** the present time: RFC3339, whole seconds, UTC */
  readonly now: string;
}

interface RuleNamed<Name extends keyof Findings> {
  readonly name: Name;
  /** returns the rule's facts; `known`: results of the earlier rules; undefined: the rule is not in use */
  readonly look: (seen: ObservedByRules, known: Partial<Findings>) => Findings[Name] | undefined;
}

export type Rule = { readonly [Name in keyof Findings]: RuleNamed<Name> }[keyof Findings];

/** The rules that look at all pods before any pod is selected, in order. Without them a rollout follows OpenKruise. */
export const RULES: readonly Rule[] = [
  {
    name: "ordinals",
    look: ({ sidecarSet, pods }) => (steeringOf(sidecarSet).followsOrdinals ? downBeside(sidecarSet, pods) : undefined),
  },
  { name: "ownerBudget", look: ({ sidecarSet }) => steeringOf(sidecarSet).ownerBudget },
  {
    name: "disruptionBudgets",
    look: ({ disruptionBudgets: budgets, now }) => (budgets.length === 0 ? undefined : { budgets, now }),
  },
  { name: "missed", look: (seen) => (evictsMissed(seen.sidecarSet) ? countEvicted(seen) : undefined) },
  { name: "replacement", look: replacementUse },
  { name: "prePull", look: ({ pulls, now }) => pulls && { ...pulls, now } },
  {
    name: "restarts",
    look: ({ restarting, reserved: { uids: reserved }, pods, now }) =>
      restarting && openRestarts(restarting, { reserved, pods, now }),
  },
  { name: "waves", look: wavesUse },
];

/** Asks the rules, in order. */
function lookBy(rules: readonly Rule[], seen: ObservedByRules): Partial<Findings> {
  const known: Partial<Findings> = {};
  for (const { name, look } of rules) {
    const found = look(seen, known);
    if (found !== undefined) Object.assign(known, { [name]: found });
  }
  return known;
}

const NO_IMAGES = "Kubernetes lets no image change";

/**
 * The text about the pass's action in place of images for these pods, after the API server's words. "": they refused
 * for another reason.
 */
export function insteadOfImages(scene: Scene, sidecarSet: SidecarSet, pods: readonly Pod[]): string {
  const { plan } = scene.budgetUse.rules.replacement ?? {};
  const forbidden = forbiddenPods(scene.refused);
  const told = pods.filter(({ metadata }) => forbidden.has(metadata?.uid ?? ""));
  const [first] = told;
  if (first === undefined) return "";
  // These words may be from a pod that was refused for another reason.
  const noImages = told.length < pods.length ? `Kubernetes lets no image of pod ${podName(first)} change` : NO_IMAGES;
  if (told.some((pod) => plan?.isForbidden(pod)))
    return `; ${noImages}, so such pods are replaced, as the annotation replace asks for`;
  const why = plan && replacesNotUpgradable(sidecarSet) && (whyNotRecreated(first, sidecarSet) ?? plan.stop);
  if (why) return `; ${noImages}, and ${first.metadata?.name} is not replaced: ${why}`;
  return `; ${noImages}: the annotation ${REPLACE_ANNOTATION} with NotUpgradable has pods replaced instead`;
}

/** The use of replaced pods; undefined: no pod is replaced, and none is awaited. */
function replacementUse({ states, refused, now, ...seen }: ObservedByRules): Findings["replacement"] | undefined {
  const { sidecarSet, pods, revisions, reserved } = seen;
  const { uids, departed, keptOwners } = reserved;
  const awaited = awaitedOf(departed, { sidecarSet, pods, reserved: uids, now });
  const forbidden = forbiddenPods(refused);
  const plan = replacementOf({ sidecarSet, pods, states, revisions, awaited, forbidden });
  const { missing, gone, overdue } = awaited;
  return {
    ...(missing.size > 0 ? { missing } : {}),
    ...(gone.length > 0 ? { gone } : {}),
    ...(overdue.length > 0 ? { overdue: new Set(overdue.map(({ namespace }) => namespace)) } : {}),
    ...(plan ? { plan } : {}),
    ...(keptOwners.size > 0 ? { keptOwners } : {}),
  };
}

function wavesUse(seen: ObservedByRules, { replacement, restarts: open = [] }: Partial<Findings>) {
  const { sidecarSet, states, namespaceLabels, checks, now, restarting } = seen;
  const plan = replacement?.plan;
  const owed = restarting ? owedRestarts(restarting, { sidecarSet, states, replacement: plan }) : [];
  const beside = { replacement: plan, gone: replacement?.gone, restarts: [...open, ...owed] };
  return wavesNow({ sidecarSet, namespaceLabels, checks, now, ...beside }, states);
}

/** Counts terminating pods that missed their sidecars: a rollout counts no pods without them otherwise. */
function countEvicted({ sidecarSet, pods, reserved: { uids }, now }: ObservedByRules): number {
  const { name = "" } = sidecarSet.metadata ?? {};
  // deletionTimestamp says when the pod should be gone: a pod that hangs longer does not hold the rollout.
  const isGoing = (pod: Pod) => (pod.metadata?.deletionTimestamp ?? "") > now;
  return countOf(pods, (pod) => !isInjected(pod, name) && (isGoing(pod) || uids.has(pod.metadata?.uid ?? "")));
}
