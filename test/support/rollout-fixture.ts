/** SidecarSets and pods for tests of rollouts, as small as they can be. */
import type { ContainerStatus, Pod, PodSpec } from "../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NOTHING_RESERVED, type Reserved } from "../../shared/core/rollout/select/reserved.ts";
import { injectedBy, listedPod } from "./objects.ts";

export const NOW = "2025-06-01T00:00:00Z";
/** Parts of an observation in which no pass writes, and nodes have no effect. */
export const UNTOUCHED = {
  taken: [],
  checks: [],
  reserved: NOTHING_RESERVED,
  kubelets: new Map(),
  isResizeServed: false,
  namespaceLabels: new Map(),
  disruptionBudgets: [],
} as const;

/** Returns reservations of these pods, for any release. */
export function reservedFor(uids: Iterable<string>): Reserved {
  return { ...NOTHING_RESERVED, uids: new Set(uids), areForThis: false };
}

export const CONTEXT = { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS } as const;
export const OLD_HASH = "old";
export const NEW_HASH = "new";

/** Returns a SidecarSet named "ss" with the image reg/sc:v2 and NEW_HASH. */
export function sidecarSetOf(spec: SidecarSetSpec = {}): SidecarSet {
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: {
      name: "ss",
      uid: "uid-ss",
      generation: 2,
      resourceVersion: "100",
      annotations: { [HASH_ANNOTATION]: NEW_HASH, [HASH_WITHOUT_IMAGE_ANNOTATION]: "same" },
    },
    spec: { containers: [{ name: "sc", image: "reg/sc:v2" }], ...spec },
  };
}

export interface PodFacts {
  readonly name?: string;
  readonly hash?: string;
  readonly withoutImage?: string;
  readonly isReady?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly phase?: string;
  /** image of the sidecar, in the pod's spec and in its status */
  readonly image?: string;
  readonly spec?: PodSpec;
  readonly statuses?: readonly ContainerStatus[];
}

export function statusesOf({ containers }: PodSpec, ready = true): readonly ContainerStatus[] {
  return containers.map(({ name, image = "" }) => ({ name, image, imageID: `cri://${image}@id`, ready }));
}

/** Returns a settled pod that "ss" injected; by default it is old, running and ready. */
export function podOf(facts: PodFacts = {}): Pod {
  const { name = "p", hash = OLD_HASH, isReady = true, image = "reg/sc:v1" } = facts;
  const spec = facts.spec ?? {
    nodeName: "n",
    containers: [
      { name: "main", image: "reg/main:v1" },
      { name: "sc", image },
    ],
  };
  return listedPod(
    {
      namespace: "default",
      name,
      uid: `uid-${name}`,
      resourceVersion: "7",
      creationTimestamp: facts.creationTimestamp ?? "2025-01-01T00:00:00Z",
      labels: facts.labels ?? {},
      annotations: {
        ...injectedBy("ss", { hash, withoutImage: facts.withoutImage ?? "same", sidecars: ["sc"], at: NOW }),
        ...facts.annotations,
      },
    },
    spec,
    {
      phase: facts.phase ?? "Running",
      conditions: [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime: "2025-01-01T00:01:00Z" }],
      containerStatuses: facts.statuses ?? statusesOf(spec, isReady),
    },
  );
}

/** Returns the pod right after a pass updated it, ready until then. */
export function takenDown(pod: Pod): Pod {
  const state = {
    ss: { revision: NEW_HASH, updateTimestamp: NOW, lastContainerStatuses: { sc: { imageID: "before" } } },
  };
  const annotations = { ...pod.metadata?.annotations, [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify(state) };
  const conditions = [{ type: "Ready", status: "False", lastTransitionTime: NOW }] as const;
  return { ...pod, metadata: { ...pod.metadata, annotations }, status: { ...pod.status, conditions } };
}

/** A set with the hot-upgrade sidecar "mesh", whose empty image is reg/empty:1. */
export function hotSidecarSetOf(image = "reg/mesh:v2", spec: SidecarSetSpec = {}): SidecarSet {
  const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "reg/empty:1" };
  return sidecarSetOf({ containers: [{ name: "mesh", image, upgradeStrategy }], ...spec });
}

/** Returns a pod with both slots of "mesh". */
export function hotPodOf(images: readonly [string, string], working: "mesh-1" | "mesh-2", facts: PodFacts = {}): Pod {
  const spec = {
    nodeName: "n",
    containers: [
      { name: "main", image: "reg/main:v1" },
      { name: "mesh-1", image: images[0] },
      { name: "mesh-2", image: images[1] },
    ],
  };
  const annotations = { [WORKING_HOT_UPGRADE_ANNOTATION]: JSON.stringify({ mesh: working }), ...facts.annotations };
  return podOf({ spec, ...facts, annotations });
}
