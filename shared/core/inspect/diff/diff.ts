/** The effect of a changed SidecarSet on running pods: which are updated in place, which must be recreated, and why. */
import type { ControllerRevision, Labels, Namespace, Pod } from "../../../api/kubernetes.ts";
import {
  CONTROL_PLANE_LABEL,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  MIRROR_ANNOTATION,
  REPLACE_ANNOTATION,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { EXEMPT_NAMESPACES } from "../../injection/match/matches.ts";
import { declinesSidecars, hasAllSidecars, isActive, isInjected } from "../../pod/is-matched.ts";
import { canBeUpdated, type PodState } from "../../pod/pod-state.ts";
import { replacesNotUpgradable, restartsAtOnce, whyNotRecreated } from "../../pod/replaced.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { waveOf } from "../../pod/steering/waves.ts";
import { type Renewal, renewalsOf } from "../../pod/workload.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import {
  budgetStanding,
  coverageBy,
  type DisruptionBudget,
  idOf,
} from "../../rollout/rules/disruption-budgets/disruption-budget.ts";
import { type DrainsAhead, drainsAhead } from "../../rollout/rules/drain/drain.ts";
import { pullsAhead } from "../../rollout/rules/pre-pull/pull-guard.ts";
import { type Surroundings, stateReader } from "../../rollout/select/observed-states.ts";
import { immutableFields } from "../../rollout/upgrade/immutable-fields.ts";
import { revisionData } from "../../sidecarset/revision/recorded-revision.ts";
import { whyNeverInjected, whyNotByNewPods } from "../restart-advice.ts";
import { isHeld, type SpecChange, specChanges } from "./spec-changes.ts";

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** The effect of the changed SidecarSet on one running pod. */
export type PodFate =
  | ({ readonly kind: "updated" } & PodName)
  | ({ readonly kind: "inPlace" } & PodName)
  /**
   * `fields` differ from the injected ones; empty when no revision has them. `hindrance`: why its node cannot do it.
   * "replace": the rollout evicts it, as an annotation asks for; "restart": together with its workload; "recreate": a
   * person has to restart the workload.
   */
  | ({
      readonly kind: "recreate" | "replace" | "restart";
      readonly fields: readonly string[];
      readonly hindrance?: string;
    } & PodName)
  /** selected, but without its sidecars: it gets them only when it is recreated */
  | ({ readonly kind: "lacks" } & PodName)
  /** no longer selected: it keeps its sidecars unchanged */
  | ({ readonly kind: "left" } & PodName);

interface HashChange {
  readonly before: string;
  readonly after: string;
}

export interface SidecarSetDiff {
  /** sorted by path */
  readonly changes: readonly SpecChange[];
  readonly hash: HashChange;
  /** while it stays the same, its pods are updated in place */
  readonly hashWithoutImage: HashChange;
  /** all pods that either version selects, by namespace and name */
  readonly pods: readonly PodFate[];
  /** commands by workload, for pods that must be recreated */
  readonly renewals: readonly Renewal[];
  /** why no command is given: new pods would not get it either; absent: no such reason */
  readonly noRenewal?: string;
  /** how the rollout itself recreates these pods; absent: it does, or no controller creates others */
  readonly byRollout?: string;
  /** with gate RespectDisruptionBudgets: budgets that passes ask before in-place updates; absent: none */
  readonly disruptionBudgets?: readonly AskedBudget[];
  /** in order; absent: there are none, or this release skips them */
  readonly waves?: readonly WaveFates<PodFate["kind"]>[];
  /** the drain before an in-place update; absent: none is configured */
  readonly drain?: DrainsAhead;
  readonly prePull?: { readonly nodes: number; readonly atOnce: number };
}

/** An observation as if `after` were stored. */
export interface DiffInput extends Omit<Surroundings, "sidecarSet"> {
  /** both with defaults and hashes, as stored */
  readonly before: SidecarSet;
  readonly after: SidecarSet;
  /** pods that either version selects, including by namespace */
  readonly pods: readonly Pod[];
  /** labels of namespaces, if `after` has waves */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  readonly settings: RolloutSettings;
}

/** Pure. Finished and terminating pods are left out. */
export function diffSidecarSets(input: DiffInput): SidecarSetDiff {
  const { before, after, pods, settings } = input;
  const surroundings = { ...input, sidecarSet: after, revisions: [...input.revisions, revisionOf(before)] };
  const stateOf = stateReader(surroundings, settings);
  const fates = pods.filter(isActive).flatMap((pod) => {
    const state = stateOf(pod);
    const fate = fateOf(state, surroundings);
    return fate === undefined ? [] : [{ pod, state, fate }];
  });
  const inPlace = fates.filter(({ fate }) => fate.kind === "inPlace").map(({ state }) => state);
  return {
    changes: specChanges(before, after, { ...settings, canResize: settings.InPlaceResize && input.isResizeServed }),
    hash: hashChange(before, after, HASH_ANNOTATION),
    hashWithoutImage: hashChange(before, after, HASH_WITHOUT_IMAGE_ANNOTATION),
    ...askedBudgets(input.disruptionBudgets, inPlace),
    ...beforeRestarts(after, inPlace),
    ...waveFates(
      after,
      input.namespaceLabels,
      fates.map(({ fate }) => fate),
    ),
    ...renewalOf(
      fates.filter(({ fate }) => fate.kind === "recreate" || fate.kind === "lacks").map(({ pod }) => pod),
      after,
    ),
    ...byRolloutOf(
      fates.filter(({ fate }) => fate.kind === "recreate").map(({ pod }) => pod),
      after,
    ),
    pods: fates
      .map(({ fate }) => fate)
      .toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name)),
  };
}

function beforeRestarts(after: SidecarSet, pods: readonly PodState[]): Pick<SidecarSetDiff, "drain" | "prePull"> {
  if (pods.length === 0) return {};
  const [drain, prePull] = [drainsAhead(after, pods), pullsAhead(after, pods)];
  return { ...(drain ? { drain } : {}), ...(prePull ? { prePull } : {}) };
}

/** Commands, only if new pods get the newest sidecars. */
function renewalOf(pods: readonly Pod[], after: SidecarSet): Pick<SidecarSetDiff, "renewals" | "noRenewal"> {
  const why = pods.length === 0 ? undefined : whyNotByNewPods(after);
  if (why !== undefined) return { renewals: [], noRenewal: why };
  return { renewals: renewalsOf(pods.filter((pod) => whyNeverInjected(pod) === undefined)) };
}

const BY_ROLLOUT = `The rollout recreates them within maxUnavailable if you set the annotation ${REPLACE_ANNOTATION}: NotUpgradable, or "NotUpgradable, Restart" to restart their workloads.`;

function byRolloutOf(pods: readonly Pod[], after: SidecarSet): Pick<SidecarSetDiff, "byRollout"> {
  const isPossible = !(replacesNotUpgradable(after) || isHeld(after)) && whyNotByNewPods(after) === undefined;
  return isPossible && pods.some((pod) => whyNotRecreated(pod, after) === undefined) ? { byRollout: BY_ROLLOUT } : {};
}

function hashChange(before: SidecarSet, after: SidecarSet, annotation: string): HashChange {
  const hashOf = ({ metadata }: SidecarSet) => metadata?.annotations?.[annotation] ?? "";
  return { before: hashOf(before), after: hashOf(after) };
}

/** The future revision, so that a diff can be made for pods that have it. */
function revisionOf(sidecarSet: SidecarSet): ControllerRevision {
  return {
    metadata: { annotations: sidecarSet.metadata?.annotations ?? {} },
    data: revisionData(sidecarSet),
    revision: 0,
  };
}

function fateOf(state: PodState, { sidecarSet: after, revisions }: Surroundings): PodFate | undefined {
  const { pod } = state;
  const place = { namespace: pod.metadata?.namespace ?? "", name: pod.metadata?.name ?? "" };
  const isInjectedHere = isInjected(pod, after.metadata?.name ?? "");
  if (selectorMatches(after.spec.selector, pod.metadata?.labels) !== true)
    return isInjectedHere ? { kind: "left", ...place } : undefined;
  if (!isInjectedHere) return { kind: "lacks", ...place };
  if (state.isUpdated) return { kind: "updated", ...place };
  if (!isHeld(after) && canBeUpdated(state, after) && hasAllSidecars(pod, after)) return { kind: "inPlace", ...place };
  return { kind: kindOf(pod, after), ...place, ...lackingOf(state, after, revisions) };
}

/** How the pod gets a successor. */
function kindOf(pod: Pod, after: SidecarSet): "replace" | "restart" | "recreate" {
  if (isHeld(after) || !replacesNotUpgradable(after) || whyNotRecreated(pod, after) !== undefined) return "recreate";
  return restartsAtOnce(after) > 0 ? "restart" : "replace";
}

function lackingOf({ pod, native }: PodState, after: SidecarSet, revisions: readonly ControllerRevision[]) {
  const hindrance = isHeld(after) ? "the update strategy is NotUpdate" : native?.hindrance;
  return { fields: immutableFields(after, [pod], revisions), ...(hindrance ? { hindrance } : {}) };
}

/** The disruption budgets that a change concerns: those of pods that are updated in place. */
interface AskedBudget {
  /** KIND NAMESPACE/NAME */
  readonly budget: string;
  /** number of updated pods that the budget selects */
  readonly pods: number;
  /** how many more pods may be down now */
  readonly allowed: number;
  /** one sentence */
  readonly standing: string;
}

/** `pods`: pods updated in place. The strictest budgets come first. */
function askedBudgets(
  budgets: readonly DisruptionBudget[],
  pods: readonly PodState[],
): { readonly disruptionBudgets?: readonly AskedBudget[] } {
  const coverageOf = coverageBy(budgets);
  const podsOf = new Map<DisruptionBudget, number>();
  for (const budget of pods.flatMap(({ pod }) => coverageOf(pod).budgets))
    podsOf.set(budget, (podsOf.get(budget) ?? 0) + 1);
  const asked = budgets.flatMap((budget): readonly AskedBudget[] => {
    const own = podsOf.get(budget);
    if (own === undefined) return [];
    return [{ budget: idOf(budget), pods: own, allowed: budget.allowed, standing: budgetStanding(budget) }];
  });
  return asked.length === 0 ? {} : { disruptionBudgets: asked.toSorted((a, b) => a.allowed - b.allowed) };
}

/** Counts of pods by their fate in each wave; a rollout updates one wave after the other. */
interface WaveFates<Kind extends string> {
  /** "": namespaces outside all waves, which come last */
  readonly name: string;
  /** number of pods by fate; absent: none */
  readonly fates: Readonly<Partial<Record<Kind, number>>>;
}

/** Absent when the changed SidecarSet has no waves, or this release skips them. */
function waveFates<Kind extends string>(
  after: SidecarSet,
  namespaceLabels: ReadonlyMap<string, Labels>,
  pods: readonly { readonly kind: Kind; readonly namespace: string }[],
): { readonly waves?: readonly WaveFates<Kind>[] } {
  const { waves, areWavesSkipped } = steeringOf(after);
  if (waves === undefined || areWavesSkipped) return {};
  const counts = [...waves, undefined].map(() => new Map<Kind, number>());
  for (const { kind, namespace } of pods) {
    const count = counts[waveOf(waves, namespaceLabels.get(namespace))];
    count?.set(kind, (count.get(kind) ?? 0) + 1);
  }
  const rows = counts.map((count, index) => ({
    name: waves[index]?.name ?? "",
    fates: Object.fromEntries(count) as Partial<Record<Kind, number>>,
  }));
  return { waves: rows.filter(({ name, fates }) => name !== "" || Object.keys(fates).length > 0) };
}

/** The effect of a new SidecarSet on running pods: none gets its sidecars before it is recreated. */
export interface NewSetEffect {
  readonly isNew: true;
  /** selected pods, by namespace and name */
  readonly pods: readonly { readonly namespace: string; readonly name: string }[];
  /** commands by workload that recreate these pods */
  readonly renewals: readonly Renewal[];
  /** selected pods that never get its sidecars, because API servers do not ask a webhook about them: by namespace */
  readonly excluded: readonly { readonly namespace: string; readonly pods: number }[];
}

/** Pure. `pods`: pods that it selects, within its namespaces. */
export function newSetEffect(
  pods: readonly Pod[],
  { namespaces, settings }: { readonly namespaces: readonly Namespace[]; readonly settings: RolloutSettings },
): NewSetEffect {
  const controlled = namespaces.filter(({ metadata }) => metadata?.labels?.[CONTROL_PLANE_LABEL] !== undefined);
  const left = new Set([...EXEMPT_NAMESPACES, ...controlled.map(({ metadata }) => metadata?.name ?? "")]);
  const isOut = (pod: Pod) =>
    pod.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined || (settings.PodOptOut && declinesSidecars(pod));
  const active = pods.filter((pod) => isActive(pod) && !isOut(pod));
  const isLeft = ({ metadata }: Pod) => left.has(metadata?.namespace ?? "");
  const meant = active.filter((pod) => !isLeft(pod));
  const excluded = Map.groupBy(active.filter(isLeft), ({ metadata }) => metadata?.namespace ?? "");
  return {
    isNew: true,
    pods: meant
      .map(({ metadata: { namespace = "", name = "" } = {} }) => ({ namespace, name }))
      .toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name)),
    renewals: renewalsOf(meant),
    excluded: [...excluded]
      .map(([namespace, those]) => ({ namespace, pods: those.length }))
      .toSorted((a, b) => compareUtf8(a.namespace, b.namespace)),
  };
}
