/** The library: settings of the cluster's passes that change their actions. */
import type { KubernetesObject, Labels } from "../../shared/api/kubernetes.ts";
import type { Observation } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
} from "../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";
import { NOTHING_RESERVED } from "../../shared/core/rollout/select/reserved.ts";

export interface PassInput {
  /** FEATURE_GATES of the passes; absent, as each that is left out: off */
  readonly featureGates?: Partial<RolloutSettings>;
  /** node → version of its kubelet, for NativeSidecarInPlaceUpdate; absent: all unknown */
  readonly kubelets?: ReadonlyMap<string, string>;
  /** the API server serves pods/resize, for InPlaceResize; absent: false */
  readonly isResizeServed?: boolean;
  /** namespace → its labels, for waves; absent: no namespace has any */
  readonly namespaceLabels?: ReadonlyMap<string, Labels>;
  /** all PodDisruptionBudgets and PodUnavailableBudgets, with their status, for RespectDisruptionBudgets; absent: there are none */
  readonly disruptionBudgets?: readonly KubernetesObject[];
}

export function settingsOf({ featureGates }: PassInput): RolloutSettings {
  return { ...DEFAULT_ROLLOUT_SETTINGS, ...featureGates };
}

/** The parts of an observation that the caller left out. No pass is writing. */
export function assumed(input: PassInput): Omit<Observation, "sidecarSet" | "revisions" | "pods"> {
  const { kubelets = new Map(), isResizeServed = false, namespaceLabels = new Map() } = input;
  const surroundings = { kubelets, isResizeServed, namespaceLabels, disruptionBudgets: budgetsOf(input) };
  return { taken: [], checks: [], reserved: NOTHING_RESERVED, ...surroundings };
}

/** Passes read none without the gate. */
export function budgetsOf({ featureGates, disruptionBudgets = [] }: PassInput): readonly DisruptionBudget[] {
  if (featureGates?.RespectDisruptionBudgets !== true) return [];
  return disruptionBudgets.flatMap((object) => {
    const kind = object.kind === "PodUnavailableBudget" ? object.kind : "PodDisruptionBudget";
    return disruptionBudgetOf(kind, object) ?? [];
  });
}
