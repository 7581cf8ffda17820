/** Decides name, labels and place of the pod of an ordinal, and whether a pod still has them. */
import type { Pod, PodSpec } from "../../../api/kubernetes.ts";
import { POD_INDEX_LABEL, POD_NAME_LABEL, POD_REVISION_LABEL } from "../../../api/names.ts";
import type { StatefulSet } from "../../../api/stateful-set.ts";
import { ordinalOf, parsePodName } from "../../pod/pod-name.ts";
import { withClaimVolumes } from "../claims/claims.ts";
import { controllerReference } from "../revisions.ts";
import type { StatefulSetFeatureGates } from "../step.ts";

/** Not stored yet. `set` has the template of the revision. */
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
 * Hostname and subdomain are the set's, whatever the template says. Compat: an ordinal below zero loses its sign in the
 * hostname, as in the name (OpenKruise initIdentity).
 */
function withAddress({ spec: { serviceName } }: StatefulSet, pod: Pod): Pod {
  const { subdomain: _, ...rest } = pod.spec as PodSpec & { readonly subdomain?: string };
  const spec = { ...rest, hostname: pod.metadata?.name ?? "", ...(serviceName ? { subdomain: serviceName } : {}) };
  return { ...pod, spec: spec as PodSpec };
}

/** With the labels of its ordinal; the name, too, if its digits were written otherwise. */
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
