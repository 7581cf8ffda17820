/** Builds the request and the cluster of a pod vector, and fills in its placeholders. */
import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE, SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { Admission } from "../../../shared/core/admission/admission.ts";
import { admitPod, type PodAdmissionView } from "../../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../../shared/core/injection/match/sidecarset-index.ts";
import { convertSidecarSet } from "../../../shared/core/sidecarset/convert.ts";

export interface PodInput {
  readonly operation: string;
  readonly namespace?: string;
  readonly subResource?: string;
  readonly resource?: string;
  readonly pod: Pod;
  readonly oldPod?: Pod;
  readonly cluster?: {
    readonly namespaces?: readonly Namespace[];
    readonly sidecarSets?: readonly KubernetesObject[];
    readonly controllerRevisions?: readonly ControllerRevision[];
  };
  readonly featureGates?: Readonly<Record<string, boolean>>;
}

/** A time that occurs in no vector. */
const NOW = "2031-05-06T07:08:09Z";
/** The result of `randomOf(1, 2, 3, 4, 5)` for five characters. */
const RANDOM_CHARACTERS = "cdfgh";

/** Returns the numbers that select the characters of RANDOM_CHARACTERS. */
function randomCharacters(): () => number {
  let index = 0;
  return () => (((index++ % 5) + 1.5) / 27) % 1;
}

/** Returns the value with the product's inputs in place of its placeholders. */
export function fillIn<T>(value: T): T {
  if (typeof value === "string") {
    return value.replaceAll("__NOW__", NOW).replaceAll("__RAND5__", RANDOM_CHARACTERS) as T;
  }
  if (Array.isArray(value)) return value.map(fillIn) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fillIn(member)])) as T;
}

/** Returns the SidecarSet in the hub version. A view has no other version. */
export function hubSidecarSet(object: KubernetesObject): SidecarSet {
  if (object.apiVersion !== SIDECARSET_V1ALPHA1) return object as SidecarSet;
  const converted = convertSidecarSet(object, SIDECARSET_V1BETA1);
  if (converted.kind === "DecodeError") throw new Error(converted.message);
  return converted.value as SidecarSet;
}

function podRequest(input: PodInput): AdmissionRequest {
  const { operation, namespace, subResource, resource = "pods", pod, oldPod } = input;
  return {
    uid: "request",
    operation,
    resource: { group: "", version: "v1", resource },
    object: pod,
    ...(namespace === undefined ? {} : { namespace }),
    ...(subResource === undefined ? {} : { subResource }),
    ...(oldPod === undefined ? {} : { oldObject: oldPod }),
  };
}

function viewOf({ pod, namespace, cluster = {} }: PodInput): PodAdmissionView {
  const name = pod.metadata?.namespace || namespace || "default";
  return {
    index: indexSidecarSets((cluster.sidecarSets ?? []).map(hubSidecarSet)),
    namespace: cluster.namespaces?.find(({ metadata }) => metadata?.name === name),
    revisions: cluster.controllerRevisions ?? [],
  };
}

export function admit(input: PodInput, random = randomCharacters()): Admission {
  return admitPod(podRequest(input), viewOf(input), {
    now: NOW,
    random,
    kruiseNamespace: KRUISE_NAMESPACE,
    gates: input.featureGates ?? {},
  });
}
