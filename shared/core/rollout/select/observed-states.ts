/** Decides where each pod stands, from all that was observed: the one way from an observation to the states of pods. */
import type { ControllerRevision, Labels, Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf, type Sequence, where } from "../../../go/sequence.ts";
import { isInjected } from "../../pod/is-matched.ts";
import { isDownWithOtherValues, type PodState, podStateOf, uidOf } from "../../pod/pod-state.ts";
import { matchedStates } from "../../pod/pod-states.ts";
import { evictsMissed } from "../../pod/replaced.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { forbiddenPods, type RefusedPod } from "../../refused-pods.ts";
import type { CheckRecord } from "../checks/check-records.ts";
import type { DisruptionBudget } from "../disruption/disruption-budget.ts";
import type { PullFacts } from "../pre-pull/pull-facts.ts";
import { awaitedOf } from "../replace/missing-pods.ts";
import { replacementOf } from "../replace/replacement.ts";
import { openRestarts, owedRestarts, type Restarting } from "../replace/workload-object.ts";
import type { RolloutSettings } from "../rollout-settings.ts";
import { isResizable, withResize } from "../upgrade/resize.ts";
import { type WavesNow, wavesNow } from "../waves/standing.ts";
import type { BudgetUse, RuleUse } from "./budget.ts";
import { classify } from "./classify.ts";
import { downBeside } from "./ordinal-turn.ts";
import type { Refused, Reserved } from "./reserved.ts";

/** What was observed beside the pods, and says where each of them stands. */
export interface Surroundings {
  /** v1beta1, as read at the beginning of the pass */
  readonly sidecarSet: SidecarSet;
  /** of the kruise namespace, by label kruise.io/sidecarset-name */
  readonly revisions: readonly ControllerRevision[];
  /** node → version of its kubelet; empty where nobody needs to know: native sidecars are what they should be, or keep their image */
  readonly kubelets: ReadonlyMap<string, string>;
  /** the API server serves pods/resize; false also where nobody needs to know */
  readonly isResizeServed: boolean;
  /** with gate RespectDisruptionBudgets all that there are; empty without */
  readonly disruptionBudgets: readonly DisruptionBudget[];
}

export interface Observed extends Surroundings {
  /** selected by spec.selector and namespaceSelector, namespaces in sorted order, each through `projectPod` */
  readonly pods: Sequence<Pod>;
  readonly reserved: Reserved;
  /** namespace → those of its labels that waves read; empty where nobody asks for waves */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  /** what came of checks of metrics, as the ledger says; empty: none was evaluated */
  readonly checks: readonly CheckRecord[];
  /** absent: no workload is restarted */
  readonly restarting?: Restarting | undefined;
  /** absent: no image is pulled before pods are updated, and none was */
  readonly pulls?: PullFacts | undefined;
}

/** How a pod's state is found out. `now`: as in `isConsistent`. */
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

/** The pods of a rollout, and what of its budget is taken. */
export interface Scene {
  readonly states: Sequence<PodState>;
  readonly budgetUse: BudgetUse;
  /** absent: nobody asks for waves */
  readonly waves?: WavesNow;
  /** pods that are not updated, and to which writes were refused */
  readonly refused: readonly RefusedPod[];
}

export function sceneOf(
  observation: Observed,
  { settings, now }: { readonly settings: RolloutSettings; readonly now: string },
): Scene {
  const { sidecarSet, pods, reserved, namespaceLabels, checks, disruptionBudgets: budgets, restarting } = observation;
  // Those whose resources have begun to change are on their way, too, and those that are out of endpoints.
  const isReservedNow = (state: PodState) =>
    state.resize?.isUnderWay === true ||
    state.drain !== undefined ||
    isDownWithOtherValues(state, sidecarSet) ||
    (reserved.uids.size > 0 && reserved.uids.has(uidOf(state.pod)));
  const states = matchedStates(pods, sidecarSet, stateReader(observation, settings, now), isReservedNow);
  const refused = refusedOf(reserved.refused, states);
  const budgetUse: BudgetUse = {
    reserved: new Set(where(states, (state) => state.isReservedNow === true).map(({ pod }) => uidOf(pod))),
    StrictMaxUnavailable: settings.StrictMaxUnavailable,
    // Drained pods may be of a larger budget.
    isReservedForThis: reserved.areForThis && countOf(states, ({ drain }) => drain !== undefined) === 0,
    passedOver: reserved.refused.passedOver,
    ...countedUse(observation, states),
    rules: {
      ordinals: downBeside(sidecarSet, pods),
      ...(budgets.length === 0 ? {} : { disruptionBudgets: { budgets, now } }),
      missed: countEvicted(sidecarSet, pods, { reserved: reserved.uids, now }),
      replacement: replacementUse(observation, states, refused),
      ...(observation.pulls ? { prePull: { ...observation.pulls, now } } : {}),
      ...(restarting ? { restarts: openRestarts(restarting, reserved.uids) } : {}),
    },
  };
  const { replacement, restarts: open = [] } = budgetUse.rules;
  const owed = restarting ? owedRestarts(restarting, { sidecarSet, states, replacement: replacement?.plan }) : [];
  const restarts = [...open, ...owed];
  const waves = wavesNow(
    { sidecarSet, namespaceLabels, checks, now, replacement: replacement?.plan, gone: replacement?.gone, restarts },
    states,
  );
  return { states, budgetUse, refused, ...(waves ? { waves } : {}) };
}

function refusedOf({ named }: Refused, states: Sequence<PodState>): readonly RefusedPod[] {
  if (named.length === 0) return [];
  const uids = new Set(where(states, ({ isUpdated }) => !isUpdated).map(({ pod }) => uidOf(pod)));
  return named.filter(({ uid }) => uids.has(uid));
}

/**
 * The reserved pods that cannot be fenced, if each of them waits for its turn: only then budget and partition have a place for
 * its late patch. Nothing where pods follow ordinals: such a pod may be out of turn.
 */
function countedUse(
  { sidecarSet, reserved: { unfenced } }: Observed,
  states: Sequence<PodState>,
): Pick<BudgetUse, "counted"> {
  if (unfenced.size === 0 || steeringOf(sidecarSet).followsOrdinals) return {};
  const isCounted = (state: PodState) => unfenced.has(uidOf(state.pod)) && classify(state, sidecarSet) === "waiting";
  return countOf(states, isCounted) === unfenced.size ? { counted: unfenced } : {};
}

const NOBODY: ReadonlySet<string> = new Set();

/** Nothing where no pod is replaced, and none is awaited. */
function replacementUse(
  { sidecarSet, pods, revisions, reserved: { uids, departed, keptOwners } }: Observed,
  states: Sequence<PodState>,
  refused: readonly RefusedPod[],
): RuleUse["replacement"] {
  const awaited = awaitedOf(departed, { sidecarSet, pods, reserved: uids });
  const forbidden =
    refused.length === 0
      ? NOBODY
      : forbiddenPods(
          refused,
          countOf(states, ({ isUpdated }) => !isUpdated),
        );
  const replacement = replacementOf({ sidecarSet, pods, states, revisions, awaited, forbidden });
  const { missing, gone } = awaited;
  return {
    ...(missing.size > 0 ? { missing } : {}),
    ...(gone.length > 0 ? { gone } : {}),
    ...(replacement ? { plan: replacement } : {}),
    ...(keptOwners.size > 0 ? { keptOwners } : {}),
  };
}

// How many pods are on their way out because they missed their sidecars: a rollout counts nobody without them otherwise.

/** `now` in RFC 3339. 0 where nobody asks for evictions. */
function countEvicted(
  sidecarSet: SidecarSet,
  selected: Sequence<Pod>,
  { reserved, now }: { readonly reserved: ReadonlySet<string>; readonly now: string },
): number {
  if (!evictsMissed(sidecarSet)) return 0;
  const { name = "" } = sidecarSet.metadata ?? {};
  // A deletionTimestamp says when the pod should be gone: one that hangs holds no rollout up for good.
  const isGoing = (pod: Pod) => (pod.metadata?.deletionTimestamp ?? "") > now;
  return countOf(selected, (pod) => !isInjected(pod, name) && (isGoing(pod) || reserved.has(pod.metadata?.uid ?? "")));
}
