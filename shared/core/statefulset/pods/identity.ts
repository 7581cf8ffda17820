/** Name, labels and place of the pod for an ordinal, and whether a pod still has them. */
import type { Pod, PodSpec } from "../../../api/kubernetes.ts";
import { POD_INDEX_LABEL, POD_NAME_LABEL, POD_REVISION_LABEL } from "../../../api/names.ts";
import type { StatefulSet } from "../../../api/stateful-set.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { ordinalOf, parsePodName } from "../../pod/workload.ts";
import { withClaimVolumes } from "../claims/claims.ts";
import { controllerReference } from "../revisions.ts";
import { ask, attempt, findSet, type StatefulSetFeatureGates, StepFailed, type Steps, throwFailures } from "../step.ts";
import { isTerminating } from "./pod-phase.ts";

/** A pod that is not stored yet. `set`: with the revision's template. */
export function newPod(set: StatefulSet, ordinal: number, revision: string, gates: StatefulSetFeatureGates): Pod {
  const { metadata, spec } = set.spec.template ?? {};
  const { name = "" } = set.metadata ?? {};
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      generateName: `${name}-`,
      name: `${name}-${ordinal}`,
      ...(metadata?.annotations ? { annotations: metadata.annotations } : {}),
      ...(metadata?.finalizers ? { finalizers: metadata.finalizers } : {}),
      labels: { ...metadata?.labels, [POD_REVISION_LABEL]: revision },
      ownerReferences: [controllerReference(set)],
    },
    spec: { containers: [], ...spec },
  };
  return withClaimVolumes(set, withAddress(set, withIdentity(set, pod, gates)));
}

/**
 * Sets the set's hostname and subdomain over those of the template. Compat: an ordinal below zero loses its sign in the
 * hostname, as in the name (OpenKruise initIdentity).
 */
function withAddress({ spec: { serviceName } }: StatefulSet, pod: Pod): Pod {
  const { subdomain: _, ...rest } = pod.spec as PodSpec & { readonly subdomain?: string };
  const spec = { ...rest, hostname: pod.metadata?.name ?? "", ...(serviceName ? { subdomain: serviceName } : {}) };
  return { ...pod, spec: spec as PodSpec };
}

/** Sets the labels of the ordinal. It also sets the name if its digits were written otherwise. */
export function withIdentity(set: StatefulSet, pod: Pod, gates: StatefulSetFeatureGates): Pod {
  const ordinal = ordinalOf(pod);
  const name = `${set.metadata?.name ?? ""}-${ordinal}`;
  const labels = {
    ...pod.metadata?.labels,
    [POD_NAME_LABEL]: name,
    ...(gates.PodIndexLabel ? { [POD_INDEX_LABEL]: String(ordinal) } : {}),
  };
  return { ...pod, metadata: { ...pod.metadata, name, namespace: set.metadata?.namespace ?? "", labels } };
}

/** Compat: a missing index label alone is not noticed (statefulset.md, section 3). */
export function hasIdentity(set: StatefulSet, { metadata }: Pod): boolean {
  const { parent, ordinal } = parsePodName(metadata?.name ?? "");
  return (
    ordinal >= 0 &&
    parent === set.metadata?.name &&
    metadata?.name === `${parent}-${ordinal}` &&
    metadata.namespace === set.metadata?.namespace &&
    metadata?.labels?.[POD_NAME_LABEL] === metadata?.name
  );
}

// Finds the pods of a set: it keeps its own pods, adopts pods without an owner, and releases the others.

/** `pods`: all of the namespace. Throws after the last one if some could not be adopted or released. */
export function* adoptPods(set: StatefulSet, pods: readonly Pod[]): Steps<readonly Pod[]> {
  const claimed: Pod[] = [];
  const failures: StepFailed[] = [];
  for (const pod of pods) {
    const own = yield* attempt(ownOrAdopted(set, pod));
    if (own instanceof StepFailed) failures.push(own);
    else if (own) claimed.push(own);
  }
  throwFailures(failures);
  return claimed;
}

/** The pod if it belongs to the set from now on. */
function* ownOrAdopted(set: StatefulSet, pod: Pod): Steps<Pod | undefined> {
  const owner = pod.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const isDeleting = Boolean(set.metadata?.deletionTimestamp);
  const isMatch = matches(set, pod);
  if (owner) {
    if (owner.uid !== set.metadata?.uid) return undefined;
    if (isMatch) return pod;
    if (!isDeleting) yield* release(set, pod);
    return undefined;
  }
  return isMatch && !isDeleting && !isTerminating(pod) ? yield* adopt(set, pod) : undefined;
}

function matches({ metadata, spec }: StatefulSet, pod: Pod): boolean {
  const isSelected = selectorMatches(spec.selector, pod.metadata?.labels) === true;
  return isSelected && parsePodName(pod.metadata?.name ?? "").parent === metadata?.name;
}

function* adopt(set: StatefulSet, pod: Pod): Steps<Pod | undefined> {
  const fresh = yield* findSet();
  if (fresh?.metadata?.uid !== set.metadata?.uid) {
    throw new StepFailed(`original StatefulSet ${set.metadata?.namespace}/${set.metadata?.name} is gone`);
  }
  if (fresh?.metadata?.deletionTimestamp) throw new StepFailed(`${set.metadata?.name} has just been deleted`);
  const adopted = yield* unlessRefused(ask({ kind: "AdoptPod", pod, owner: controllerReference(set) }), "NotFound");
  return adopted as Pod | undefined;
}

function* release({ metadata }: StatefulSet, pod: Pod): Steps<void> {
  const request = { kind: "ReleasePod", pod, ownerUid: metadata?.uid ?? "" } as const;
  yield* unlessRefused(ask(request), "NotFound", "Invalid");
}

/** The result; undefined for a refusal which means that no work is left. */
function* unlessRefused(steps: Steps<unknown>, ...reasons: readonly string[]): Steps<unknown> {
  const result = yield* attempt(steps);
  if (!(result instanceof StepFailed)) return result;
  if (reasons.includes(result.reason)) return undefined;
  throw result;
}
