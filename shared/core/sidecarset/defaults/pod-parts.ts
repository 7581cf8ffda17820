/** Decides what is added to the containers and volumes of a pod, in a SidecarSet and in a pod template alike. */
import type { ResourceRequirements, Volume } from "../../../api/kubernetes.ts";
import { fieldQuantity, formatQuantity } from "../../../go/quantity/quantity.ts";
import { roundUpToMilli } from "../../../go/quantity/quantity-arithmetic.ts";
import type { Defaults } from "./fill-in.ts";

export const FIELD_REF: Defaults = { fieldRef: { apiVersion: "v1" } };
const HTTP_GET: Defaults = { httpGet: { path: "/", scheme: "HTTP" } };
export const PROBE_DEFAULTS: Defaults = {
  ...HTTP_GET,
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
};

/**
 * Compat: startupProbe and grpc.service of a sidecar get no defaults, unlike in Kubernetes: old hashes stay valid (vector
 * sidecarset-default-and-hash, probes).
 */
export const CONTAINER_DEFAULTS: Defaults = {
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  ports: [{ protocol: "TCP" }],
  env: [{ valueFrom: FIELD_REF }],
  livenessProbe: PROBE_DEFAULTS,
  readinessProbe: PROBE_DEFAULTS,
  lifecycle: { postStart: HTTP_GET, preStop: HTTP_GET },
};

const FILE_MODE = 0o644;
const DOWNWARD_API: Defaults = { items: [FIELD_REF] };

/** Compat: iscsi, rbd, azureDisk, scaleIO, image and claim templates get no defaults (vector volumes-all-types). */
export const VOLUME_DEFAULTS: Defaults = {
  hostPath: { type: "" },
  secret: { defaultMode: FILE_MODE },
  configMap: { defaultMode: FILE_MODE },
  downwardAPI: { defaultMode: FILE_MODE, ...DOWNWARD_API },
  projected: {
    defaultMode: FILE_MODE,
    sources: [{ downwardAPI: DOWNWARD_API, serviceAccountToken: { expirationSeconds: 3600 } }],
  },
};

export type Quantities = NonNullable<ResourceRequirements["limits"]>;

export function roundUp(quantities: Quantities): Quantities {
  return Object.fromEntries(
    Object.entries(quantities).map(([resource, quantity]) => {
      const parsed = fieldQuantity(quantity);
      return [resource, parsed === undefined ? quantity : formatQuantity(roundUpToMilli(parsed))];
    }),
  );
}

export function roundUpResources(resources: ResourceRequirements | undefined): ResourceRequirements {
  return {
    ...resources,
    ...(resources?.limits === undefined ? {} : { limits: roundUp(resources.limits) }),
    ...(resources?.requests === undefined ? {} : { requests: roundUp(resources.requests) }),
  };
}

/** One without a source is an empty directory. */
export function defaultVolume(volume: Volume): Volume {
  const { name: _name, ...source } = volume;
  return Object.keys(source).length === 0 ? ({ ...volume, emptyDir: {} } as Volume) : volume;
}
