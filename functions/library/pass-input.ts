/** The library: settings of the passes of a cluster that change their actions. */

import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject, Labels } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_KIND, SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Observation } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
} from "../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";
import { NOTHING_RESERVED } from "../../shared/core/rollout/select/reserved.ts";
import { convertSidecarSet } from "../../shared/core/sidecarset/convert.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";

export interface PassInput {
  /** FEATURE_GATES of the passes; an absent gate is off */
  readonly featureGates?: Partial<RolloutSettings>;
  /** versions of kubelets by node, for NativeSidecarInPlaceUpdate; absent: all are unknown */
  readonly kubelets?: ReadonlyMap<string, string>;
  /** the API server serves pods/resize, for InPlaceResize; absent: false */
  readonly isResizeServed?: boolean;
  /** labels of namespaces by name, for waves; absent: no namespace has labels */
  readonly namespaceLabels?: ReadonlyMap<string, Labels>;
  /** all PodDisruptionBudgets and PodUnavailableBudgets, with their status, for RespectDisruptionBudgets; absent: there are none */
  readonly disruptionBudgets?: readonly KubernetesObject[];
}

export function settingsOf({ featureGates }: PassInput): RolloutSettings {
  return { ...DEFAULT_ROLLOUT_SETTINGS, ...featureGates };
}

/** The parts of an observation that the caller leaves out. It assumes that no pass is writing. */
export function assumed(input: PassInput): Omit<Observation, "sidecarSet" | "revisions" | "pods"> {
  const { kubelets = new Map(), isResizeServed = false, namespaceLabels = new Map() } = input;
  const surroundings = { kubelets, isResizeServed, namespaceLabels, disruptionBudgets: budgetsOf(input) };
  return { taken: [], checks: [], reserved: NOTHING_RESERVED, ...surroundings };
}

/** The disruption budgets. Without the gate passes read none. */
export function budgetsOf({ featureGates, disruptionBudgets = [] }: PassInput): readonly DisruptionBudget[] {
  if (featureGates?.RespectDisruptionBudgets !== true) return [];
  return disruptionBudgets.flatMap((object) => {
    const kind = object.kind === "PodUnavailableBudget" ? object.kind : "PodDisruptionBudget";
    return disruptionBudgetOf(kind, object) ?? [];
  });
}

// Reads a SidecarSet from a manifest, in the form that the webhook would store: v1beta1, with defaults and hashes.

export function kindText(object: KubernetesObject): string {
  const { kind } = object ?? {};
  return typeof kind === "string" ? kind : "thing without a kind";
}

/** The SidecarSet in v1beta1, with nothing added. @throws TypeError that says in one sentence what is wrong */
export function hubSidecarSet(object: KubernetesObject): SidecarSet {
  const { kind, apiVersion } = object ?? {};
  if (kind !== SIDECARSET_KIND) throw new TypeError(`a ${kindText(object)} is no SidecarSet`);
  if (apiVersion !== SIDECARSET_V1BETA1 && apiVersion !== SIDECARSET_V1ALPHA1)
    throw new TypeError(`its apiVersion is neither ${SIDECARSET_V1BETA1} nor ${SIDECARSET_V1ALPHA1}`);
  const hub = convertSidecarSet(object, SIDECARSET_V1BETA1);
  if (hub.kind === "DecodeError") throw new TypeError(hub.message);
  return hub.value as SidecarSet;
}

/** The SidecarSet as the webhook would store it. @throws TypeError that says in one sentence what is wrong */
export function storedSidecarSet(object: KubernetesObject): SidecarSet {
  const written = hubSidecarSet(object);
  // API servers drop the namespace of cluster-wide objects before they ask a webhook.
  const { namespace: _dropped, ...metadata } = written.metadata ?? {};
  const hub = { ...written, metadata };
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const operation = metadata.uid === undefined ? "CREATE" : "UPDATE";
  const request: AdmissionRequest = { uid: "library", resource, operation, object: hub };
  const admission = mutateSidecarSet(request);
  if (admission.kind === "denied") throw new TypeError(admission.message);
  // The object is copied, because the caller may change its own while results are kept.
  const { spec, ...rest } = (admission.object ?? hub) as SidecarSet;
  // The only default in the definition; API servers set it last.
  const secrets = spec.imagePullSecrets?.map((one) => ({ name: "", ...one }));
  return { ...rest, spec: { ...spec, ...(secrets ? { imagePullSecrets: secrets } : {}) } };
}
