/** The SidecarSet and the pods of the world, as webhooks leave them behind. */
import type { ContainerStatus, Pod, PodCondition } from "../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  SIDECARSET_V1BETA1,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";

export const SET = "mesh";
export const KRUISE_NAMESPACE = "kruise-system";
export const POD_NAMESPACES = ["bakery", "shop"] as const;
export const SIDECAR = "proxy";
export const EMPTY_IMAGE = "registry.example/empty:1";

/** What a user says of the SidecarSet. */
export interface Release {
  readonly version: number;
  /** another shape than 0: more than the image differs, and pods of the old shape cannot be upgraded in place */
  readonly shape: number;
  readonly strategy: UpdateStrategy;
  /** value of the pods' label `app` */
  readonly app: string;
}

export const imageOf = (version: number) => `registry.example/proxy:${version}`;
const hashOf = ({ version, shape }: Pick<Release, "version" | "shape">) => `hash-${version}-${shape}`;
const shapeHashOf = (shape: number) => `shape-${shape}`;

/** Everything of the object that a user writes, or the webhook for the user. */
export function sidecarSetOf({ version, shape, strategy, app }: Release, isHot: boolean): SidecarSet {
  const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY_IMAGE };
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: {
      name: SET,
      annotations: {
        [HASH_ANNOTATION]: hashOf({ version, shape }),
        [HASH_WITHOUT_IMAGE_ANNOTATION]: shapeHashOf(shape),
      },
    },
    spec: {
      selector: { matchLabels: { app } },
      containers: [{ name: SIDECAR, image: imageOf(version), ...(isHot ? { upgradeStrategy } : {}) }],
      updateStrategy: { type: "RollingUpdate", ...strategy },
    },
  };
}

/** A pod right after its injection. */
export function injectedPod(
  place: { readonly namespace: string; readonly name: string; readonly uid: string },
  { version, shape }: Pick<Release, "version" | "shape">,
  isHot: boolean,
): Pod {
  const record = (hash: string) =>
    JSON.stringify({
      [SET]: { updateTimestamp: "2026-01-01T00:00:00Z", hash, sidecarSetName: SET, sidecarList: [SIDECAR] },
    });
  const sidecars = isHot
    ? [
        { name: `${SIDECAR}-1`, image: imageOf(version) },
        { name: `${SIDECAR}-2`, image: EMPTY_IMAGE },
      ]
    : [{ name: SIDECAR, image: imageOf(version) }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...place,
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { app: "web", tier: "blue" },
      annotations: {
        [INJECTED_LIST_ANNOTATION]: SET,
        [HASH_ANNOTATION]: record(hashOf({ version, shape })),
        [HASH_WITHOUT_IMAGE_ANNOTATION]: record(shapeHashOf(shape)),
        ...(isHot ? { [WORKING_HOT_UPGRADE_ANNOTATION]: JSON.stringify({ [SIDECAR]: `${SIDECAR}-1` }) } : {}),
      },
    },
    spec: { nodeName: "node-1", containers: [{ name: "main", image: "registry.example/main:1" }, ...sidecars] },
  };
}

export const imageIDOf = (image: string) => `registry.example/store@sha256:${image.replaceAll(/[^a-z0-9]/g, "")}`;

/** Everything runs what the spec says. */
export function runningStatus(pod: Pod): NonNullable<Pod["status"]> {
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }): ContainerStatus => {
    return { name, image, imageID: imageIDOf(image), ready: true, restartCount: 0 };
  });
  return { ...pod.status, phase: "Running", containerStatuses, conditions: withReady(pod, true) };
}

export function withReady(pod: Pod, isReady: boolean): readonly PodCondition[] {
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "Ready");
  return [...others, { type: "Ready", status: isReady ? "True" : "False" }];
}

/** The hash that the pod says it was brought to; "" for none. */
export function hashOfPod({ metadata }: Pod): string {
  const text = metadata?.annotations?.[HASH_ANNOTATION];
  const records = text ? (JSON.parse(text) as Record<string, { readonly hash?: string }>) : {};
  return records[SET]?.hash ?? "";
}

export function isPodReady({ metadata, status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return status?.phase === "Running" && ready?.status === "True" && !metadata?.deletionTimestamp;
}

/** Every container is ready and runs the image that it should: what a user would call working. */
export function isWorking(pod: Pod): boolean {
  const statuses = pod.status?.containerStatuses ?? [];
  const runs = ({ name, image }: { readonly name: string; readonly image?: string }) =>
    statuses.some((status) => status.name === name && status.ready === true && status.image === image);
  return isPodReady(pod) && pod.spec.containers.every(runs);
}
