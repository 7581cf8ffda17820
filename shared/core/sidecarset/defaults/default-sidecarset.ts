/** Decides what OpenKruise's mutating webhook adds to the spec of a SidecarSet. */
import type { SidecarContainer, SidecarSetSpec } from "../../../api/sidecarset.ts";
import {
  CONTAINER_DEFAULTS,
  type Defaults,
  defaultImagePullPolicy,
  defaultVolume,
  FIELD_REF,
  fillIn,
  roundUpResources,
  VOLUME_DEFAULTS,
} from "./pod-parts.ts";

/** Compat: shareVolumeDevicePolicy gets no default: old hashes stay valid (vector share-volume-policies). */
const CONTAINER: Defaults = {
  upgradeStrategy: { upgradeType: "ColdUpgrade" },
  shareVolumePolicy: { type: "disabled" },
  ...CONTAINER_DEFAULTS,
  transferEnv: [{ sourceContainerNameFrom: FIELD_REF }],
};

const SPEC: Defaults = {
  updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 0 },
  initContainers: [{ podInjectPolicy: "AfterAppContainer", ...CONTAINER }],
  containers: [{ podInjectPolicy: "BeforeAppContainer", ...CONTAINER }],
  volumes: [VOLUME_DEFAULTS],
  revisionHistoryLimit: 10,
  patchPodMetadata: [{ patchPolicy: "Retain" }],
  injectionStrategy: { revision: { policy: "Always" } },
};

function defaultContainer(container: SidecarContainer): SidecarContainer {
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy ?? defaultImagePullPolicy(container.image ?? ""),
    resources: roundUpResources(container.resources),
  };
}

/**
 * The spec, as `decodeGo` gives it, with all defaults; fields that were added come last. Both API versions have these
 * fields. Source: OpenKruise apis/apps/defaults, SetDefaultsSidecarSet.
 */
export function defaultSidecarSetSpec<Spec extends SidecarSetSpec>(spec: Spec): Spec {
  const filled = fillIn(spec, SPEC);
  const { containers, initContainers, volumes } = filled;
  return {
    ...filled,
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(defaultContainer) }),
    ...(containers === undefined ? {} : { containers: containers.map(defaultContainer) }),
    ...(volumes === undefined ? {} : { volumes: volumes.map(defaultVolume) }),
  };
}
