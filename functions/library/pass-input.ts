/** The library: how passes run in the cluster that is asked about, as far as that changes what they do. */

import type { Labels } from "../../shared/api/kubernetes.ts";
import { NOTHING_RESERVED } from "../../shared/core/ledger.ts";
import type { Observation } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";

export interface PassInput {
  /** FEATURE_GATES of the passes; absent, as each that is left out: off */
  readonly featureGates?: Partial<RolloutSettings>;
  /** node → version of its kubelet, for NativeSidecarInPlaceUpdate; absent: no node is known */
  readonly kubelets?: ReadonlyMap<string, string>;
  /** the API server serves pods/resize, for InPlaceResize; absent: false */
  readonly isResizeServed?: boolean;
  /** namespace → its labels, for waves; absent: no namespace has any */
  readonly namespaceLabels?: ReadonlyMap<string, Labels>;
}

export function settingsOf({ featureGates }: PassInput): RolloutSettings {
  return { ...DEFAULT_ROLLOUT_SETTINGS, ...featureGates };
}

/** Of an observation; no pass is writing. */
export function assumed({
  kubelets = new Map(),
  isResizeServed = false,
  namespaceLabels = new Map(),
}: PassInput): Omit<Observation, "sidecarSet" | "revisions" | "pods"> {
  const surroundings = { kubelets, isResizeServed, namespaceLabels, disruptionBudgets: [] };
  return { taken: [], checks: [], reserved: NOTHING_RESERVED, ...surroundings };
}
