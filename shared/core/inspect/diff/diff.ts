/** Decides what a changed SidecarSet means for the pods that run: who can be updated in place, and who must be recreated, because of what. */

import type { ControllerRevision, Labels, Pod } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { hasAllSidecars, isActive, isInjected } from "../../pod/is-matched.ts";
import { canBeUpdated, type PodState } from "../../pod/pod-state.ts";
import { replacesNotUpgradable, restartsAtOnce, whyNotRecreated } from "../../pod/replaced.ts";
import { type Renewal, renewalsOf } from "../../pod/workload.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import { type Surroundings, stateReader } from "../../rollout/select/observed-states.ts";
import { immutableFields } from "../../rollout/upgrade/immutable-fields.ts";
import { revisionData } from "../../sidecarset/revision/revision-data.ts";
import { whyNeverInjected, whyNotByNewPods } from "../restart-advice.ts";
import { type AskedBudget, askedBudgets } from "./asked-budgets.ts";
import { type SpecChange, specChanges } from "./spec-changes.ts";
import { type WaveFates, waveFates } from "./wave-fates.ts";

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** What becomes of one pod that runs, under the changed SidecarSet. */
export type PodFate =
  | ({ readonly kind: "updated" } & PodName)
  | ({ readonly kind: "inPlace" } & PodName)
  /**
   * `fields` differ from what the pod was made with; empty where no revision tells. `hindrance`: what its node cannot do.
   * "replace": the rollout does it, as an annotation asks for, "restart" with its whole workload; "recreate": a person has
   * to restart the workload.
   */
  | ({
      readonly kind: "recreate" | "replace" | "restart";
      readonly fields: readonly string[];
      readonly hindrance?: string;
    } & PodName)
  /** selected, and has none of its sidecars: comes with them only when it is recreated */
  | ({ readonly kind: "lacks" } & PodName)
  /** keeps its sidecars as they are: no longer selected */
  | ({ readonly kind: "left" } & PodName);

interface HashChange {
  readonly before: string;
  readonly after: string;
}

export interface SidecarSetDiff {
  /** by path */
  readonly changes: readonly SpecChange[];
  readonly hash: HashChange;
  /** while it stays the same, pods that have it are updated in place */
  readonly hashWithoutImage: HashChange;
  /** of the pods that either selects, by namespace and name */
  readonly pods: readonly PodFate[];
  /** of those that get it only when they are recreated: the commands by workload */
  readonly renewals: readonly Renewal[];
  /** why no command is named: new pods would not get it either; absent: they would, or none needs it */
  readonly noRenewal?: string;
  /** with gate RespectDisruptionBudgets: asked before pods are updated in place; absent: none */
  readonly disruptionBudgets?: readonly AskedBudget[];
  /** in their order; absent: there are none, or this release skips them */
  readonly waves?: readonly WaveFates<PodFate["kind"]>[];
}

/** Observed as if `after` were stored. */
export interface DiffInput extends Omit<Surroundings, "sidecarSet"> {
  /** both with defaults and hashes, as they are stored */
  readonly before: SidecarSet;
  readonly after: SidecarSet;
  /** those that either of them selects, by its namespaces too */
  readonly pods: readonly Pod[];
  /** of namespaces, where `after` has waves */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  readonly settings: RolloutSettings;
}

/** Pure. Pods that have finished or are being deleted are left out. */
export function diffSidecarSets(input: DiffInput): SidecarSetDiff {
  const { before, after, pods, settings } = input;
  const surroundings = { ...input, sidecarSet: after, revisions: [...input.revisions, revisionOf(before)] };
  const stateOf = stateReader(surroundings, settings);
  const fates = pods.filter(isActive).flatMap((pod) => {
    const fate = fateOf(stateOf(pod), surroundings);
    return fate === undefined ? [] : [{ pod, fate }];
  });
  return {
    changes: specChanges(before, after, { ...settings, canResize: settings.InPlaceResize && input.isResizeServed }),
    hash: hashChange(before, after, HASH_ANNOTATION),
    hashWithoutImage: hashChange(before, after, HASH_WITHOUT_IMAGE_ANNOTATION),
    ...askedBudgets(
      input.disruptionBudgets,
      fates.filter(({ fate }) => fate.kind === "inPlace").map(({ pod }) => pod),
    ),
    ...waveFates(
      after,
      input.namespaceLabels,
      fates.map(({ fate }) => fate),
    ),
    ...renewalOf(
      fates.filter(({ fate }) => fate.kind === "recreate" || fate.kind === "lacks").map(({ pod }) => pod),
      after,
    ),
    pods: fates
      .map(({ fate }) => fate)
      .toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name)),
  };
}

/** Commands only where new pods get the newest sidecars. */
function renewalOf(pods: readonly Pod[], after: SidecarSet): Pick<SidecarSetDiff, "renewals" | "noRenewal"> {
  const why = pods.length === 0 ? undefined : whyNotByNewPods(after);
  if (why !== undefined) return { renewals: [], noRenewal: why };
  return { renewals: renewalsOf(pods.filter((pod) => whyNeverInjected(pod) === undefined)) };
}

function hashChange(before: SidecarSet, after: SidecarSet, annotation: string): HashChange {
  const hashOf = ({ metadata }: SidecarSet) => metadata?.annotations?.[annotation] ?? "";
  return { before: hashOf(before), after: hashOf(after) };
}

/** As it will be recorded, so that pods that have it can be told what changed. */
function revisionOf(sidecarSet: SidecarSet): ControllerRevision {
  return {
    metadata: { annotations: sidecarSet.metadata?.annotations ?? {} },
    data: revisionData(sidecarSet),
    revision: 0,
  };
}

function fateOf(state: PodState, { sidecarSet: after, revisions }: Surroundings): PodFate | undefined {
  const { pod } = state;
  const { namespace = "", name = "" } = pod.metadata ?? {};
  const isInjectedHere = isInjected(pod, after.metadata?.name ?? "");
  if (selectorMatches(after.spec.selector, pod.metadata?.labels) !== true)
    return isInjectedHere ? { kind: "left", namespace, name } : undefined;
  if (!isInjectedHere) return { kind: "lacks", namespace, name };
  if (state.isUpdated) return { kind: "updated", namespace, name };
  if (canBeUpdated(state, after) && hasAllSidecars(pod, after)) return { kind: "inPlace", namespace, name };
  return { kind: kindOf(pod, after), namespace, name, ...lackingOf(state, after, revisions) };
}

/** Whether the rollout brings another pod in its place. */
function kindOf(pod: Pod, after: SidecarSet): "replace" | "restart" | "recreate" {
  if (!replacesNotUpgradable(after) || whyNotRecreated(pod, after) !== undefined) return "recreate";
  return restartsAtOnce(after) > 0 ? "restart" : "replace";
}

function lackingOf({ pod, native }: PodState, after: SidecarSet, revisions: readonly ControllerRevision[]) {
  const fields = immutableFields(after, [pod], revisions);
  return { fields, ...(native?.hindrance ? { hindrance: native.hindrance } : {}) };
}
