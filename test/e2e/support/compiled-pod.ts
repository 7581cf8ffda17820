/**
 * Finds the fields of a pod that a compiled policy must fill as the webhook does. Also finds the pods that the policy
 * ignores.
 */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import {
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isHotUpgrade } from "../../../shared/core/pod/sidecar-containers.ts";
import type { RawAnswer } from "../../contract/raw.ts";

/** The parts that the compiler leaves out, as fields of a pod. */
export interface LeftOut {
  /** containers whose resources differ */
  readonly containers: ReadonlySet<string>;
  readonly annotations: ReadonlySet<string>;
}

export const NOTHING_LEFT_OUT: LeftOut = { containers: new Set(), annotations: new Set() };

const RESOURCES = /^spec\.(containers|initContainers)\[(\d+)\]\.resourcesPolicy$/;
const PATCH = /^spec\.patchPodMetadata\[(\d+)\]\.patchPolicy$/;

/** @throws for an unknown field */
export function leftOutOf({ spec }: SidecarSet, fields: readonly string[]): LeftOut {
  const odd = fields.find((field) => !RESOURCES.test(field) && !PATCH.test(field));
  if (odd !== undefined) throw new Error(`${odd}: not expected among what is left out`);
  const sidecars = fields.map((field) => RESOURCES.exec(field)).filter((found) => found !== null);
  const patches = fields.map((field) => PATCH.exec(field)).filter((found) => found !== null);
  const names = sidecars.map(([, list, index]) => spec[list as "containers"]?.[Number(index)]?.name ?? "");
  const keys = patches.flatMap(([, index]) => Object.keys(spec.patchPodMetadata?.[Number(index)]?.annotations ?? {}));
  return { containers: new Set(names), annotations: new Set(keys) };
}

/** Removes the time, which a policy does not know. */
function withoutTime(text: string): string {
  return text.replaceAll(/"updateTimestamp":"[^"]*"/g, '"updateTimestamp":""');
}

/** The mount of the service account's token has a random name in each pod. */
const RANDOM_NAME = /kube-api-access-[a-z0-9]{5}/g;

const RECORDS = [HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION];

/** True for a container that the policy leaves out. A hot upgrade's two containers are named after their sidecar. */
function isLeftOut({ containers }: LeftOut, name: string): boolean {
  return containers.has(name) || containers.has(name.replace(/-[12]$/, ""));
}

/** Returns the pod without parts that differ between two creations. Returns the code of a refusal. */
export function comparable({ code, body }: RawAnswer, leftOut: LeftOut): unknown {
  if (code !== 201) return { code };
  const { metadata, spec } = JSON.parse(JSON.stringify(body).replaceAll(RANDOM_NAME, "kube-api-access")) as Pod;
  const annotations = Object.entries(metadata?.annotations ?? {})
    .filter(([key]) => !leftOut.annotations.has(key))
    .map(([key, value]) => [key, RECORDS.includes(key) ? withoutTime(value) : value]);
  const lists = Object.entries({ initContainers: spec.initContainers, containers: spec.containers }).map(
    ([list, all]) => [list, all?.map((one) => (isLeftOut(leftOut, one.name) ? { ...one, resources: {} } : one))],
  );
  // The API server adds up the requests of a pod's containers. The policy leaves out the requests of some containers.
  const { requests: _, ...others } = (spec as { readonly resources?: { readonly requests?: object } }).resources ?? {};
  const resources = leftOut.containers.size > 0 ? { resources: others } : {};
  return { code, annotations, labels: metadata?.labels, spec: { ...spec, ...resources, ...Object.fromEntries(lists) } };
}

interface Written {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly [list in "initContainers" | "containers"]?: readonly {
      readonly name: string;
      readonly env?: readonly { readonly name: string }[];
    }[];
  };
}

function startsInOrder({ metadata, spec }: Written): boolean {
  if (metadata.annotations?.[CONTAINER_LAUNCH_PRIORITY_ANNOTATION] === "Ordered") return true;
  return spec.containers?.some(({ env }) => env?.some(({ name }) => name === CONTAINER_PRIORITY_ENV)) === true;
}

/** True for a pod that the policy ignores: its containers start in an order, or have a sidecar's name. */
export function isLeftToTheWebhook(pod: object, { spec }: SidecarSet): boolean {
  const written = pod as Written;
  const lists = ["initContainers", "containers"] as const;
  // The two containers of a hot upgrade have other names.
  const hasOne = lists.some((list) => {
    const sidecars = spec[list]?.filter((sidecar) => !isHotUpgrade(sidecar)).map(({ name }) => name);
    return written.spec[list]?.some(({ name }) => sidecars?.includes(name));
  });
  return hasOne || startsInOrder(written);
}
