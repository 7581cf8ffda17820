/** The defaults for containers and volumes of a pod, in a SidecarSet and in a pod template alike. */
import type { ResourceRequirements, Volume } from "../../../api/kubernetes.ts";
import { parseImageReference } from "../../../go/image-reference.ts";
import { fieldQuantity, formatQuantity } from "../../../go/quantity/quantity.ts";
import { roundUpToMilli } from "../../../go/quantity/quantity-arithmetic.ts";

// The values that a table of defaults adds to a decoded object: absent ones, and nothing below an absent object.

/**
 * Defaults by field name. A scalar fills an absent field, a table applies to an existing object. A table in a list
 * applies to every item of an existing list.
 */
export interface Defaults {
  readonly [field: string]: string | number | Defaults | readonly [Defaults];
}

type Fields = Readonly<Record<string, unknown>>;

function filled(value: unknown, defaults: Defaults[string]): unknown {
  if (typeof defaults !== "object") return value ?? defaults;
  if (value === undefined || value === null) return value;
  if (!Array.isArray(defaults)) return fillIn(value, defaults as Defaults);
  const [ofItem] = defaults;
  return (value as readonly unknown[]).map((item) => fillIn(item, ofItem));
}

/** A copy of `value`, as `decodeGo` gives it, with the defaults filled in. */
export function fillIn<T>(value: T, defaults: Defaults): T {
  const fields = value as Fields;
  const added = Object.entries(defaults).map(([field, inner]) => [field, filled(fields[field], inner)] as const);
  return { ...value, ...Object.fromEntries(added.filter(([, filledIn]) => filledIn !== undefined)) };
}

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

/** A volume without a source is an empty directory. */
export function defaultVolume(volume: Volume): Volume {
  const { name: _name, ...source } = volume;
  return Object.keys(source).length === 0 ? ({ ...volume, emptyDir: {} } as Volume) : volume;
}

// The pull policy of a container that names none.

/**
 * Always for an image with the tag latest, written or implied (neither tag nor digest). IfNotPresent for any other, and
 * for a text that names no image. Source: OpenKruise's defaults, by the normalised docker reference.
 */
export function defaultImagePullPolicy(image: string): "Always" | "IfNotPresent" {
  const reference = parseImageReference(image);
  if (reference === undefined) return "IfNotPresent";
  const isLatest = reference.tag === "latest" || (reference.tag === undefined && reference.digest === undefined);
  return isLatest ? "Always" : "IfNotPresent";
}
