/** Decides what OpenKruise's mutating webhook adds to the spec of a SidecarSet. */
import type { Volume } from "../../api/kubernetes.ts";
import type { SidecarContainer, SidecarSetSpec } from "../../api/sidecarset.ts";
import { formatQuantity, parseQuantity } from "../lib/quantity.ts";
import { roundUpToMilli } from "../lib/quantity-arithmetic.ts";
import { type Defaults, fillIn } from "./fill-in.ts";
import { defaultImagePullPolicy } from "./image-pull-policy.ts";

const FIELD_REF: Defaults = { fieldRef: { apiVersion: "v1" } };
const HTTP_GET: Defaults = { httpGet: { path: "/", scheme: "HTTP" } };
const PROBE: Defaults = { ...HTTP_GET, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

/**
 * Compat: startupProbe, grpc.service and shareVolumeDevicePolicy get no defaults, unlike in Kubernetes: old hashes
 * stay valid (vectors sidecarset-default-and-hash, probes and share-volume-policies).
 */
const CONTAINER: Defaults = {
  upgradeStrategy: { upgradeType: "ColdUpgrade" },
  shareVolumePolicy: { type: "disabled" },
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  ports: [{ protocol: "TCP" }],
  transferEnv: [{ sourceContainerNameFrom: FIELD_REF }],
  env: [{ valueFrom: FIELD_REF }],
  livenessProbe: PROBE,
  readinessProbe: PROBE,
  lifecycle: { postStart: HTTP_GET, preStop: HTTP_GET },
};

const FILE_MODE = 0o644;
const DOWNWARD_API: Defaults = { items: [FIELD_REF] };

/** Compat: iscsi, rbd, azureDisk, scaleIO, image and claim templates get no defaults (vector volumes-all-types). */
const VOLUME: Defaults = {
  hostPath: { type: "" },
  secret: { defaultMode: FILE_MODE },
  configMap: { defaultMode: FILE_MODE },
  downwardAPI: { defaultMode: FILE_MODE, ...DOWNWARD_API },
  projected: {
    defaultMode: FILE_MODE,
    sources: [{ downwardAPI: DOWNWARD_API, serviceAccountToken: { expirationSeconds: 3600 } }],
  },
};

const SPEC: Defaults = {
  updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 0 },
  initContainers: [{ podInjectPolicy: "AfterAppContainer", ...CONTAINER }],
  containers: [{ podInjectPolicy: "BeforeAppContainer", ...CONTAINER }],
  volumes: [VOLUME],
  revisionHistoryLimit: 10,
  patchPodMetadata: [{ patchPolicy: "Retain" }],
  injectionStrategy: { revision: { policy: "Always" } },
};

type Quantities = NonNullable<NonNullable<SidecarContainer["resources"]>["limits"]>;

function roundUp(quantities: Quantities): Quantities {
  return Object.fromEntries(
    Object.entries(quantities).map(([resource, quantity]) => {
      const parsed = parseQuantity(quantity);
      return [resource, parsed === undefined ? quantity : formatQuantity(roundUpToMilli(parsed))];
    }),
  );
}

function defaultContainer(container: SidecarContainer): SidecarContainer {
  const { resources } = container;
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy ?? defaultImagePullPolicy(container.image ?? ""),
    resources: {
      ...resources,
      ...(resources?.limits === undefined ? {} : { limits: roundUp(resources.limits) }),
      ...(resources?.requests === undefined ? {} : { requests: roundUp(resources.requests) }),
    },
  };
}

function defaultVolume(volume: Volume): Volume {
  const { name: _name, ...source } = volume;
  return Object.keys(source).length === 0 ? ({ ...volume, emptyDir: {} } as Volume) : volume;
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
