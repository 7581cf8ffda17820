/** What the API server serves, as its discovery says. */
import type { Cluster, Resource } from "../../kube/port.ts";

interface Discovery {
  readonly resources?: readonly { readonly name: string }[] | null;
}

/** A list without a resource reads the discovery document. @throws KubeError */
async function isServed(cluster: Cluster, place: Pick<Resource, "group" | "version">, name: string): Promise<boolean> {
  const { resources } = (await cluster.list({ ...place, plural: "", namespaced: false })) as Discovery;
  return resources?.some((one) => one.name === name) ?? false;
}

/** Whether resources of pods that run may change, from Kubernetes 1.33 on. One call, which a pass makes only where resources are to change. @throws KubeError */
export function isResizeServed(cluster: Cluster): Promise<boolean> {
  return isServed(cluster, { group: "", version: "v1" }, "pods/resize");
}

/** Whether what `compile` prints can be applied, from Kubernetes 1.36 on. @throws KubeError */
export function isMutatingPolicyServed(cluster: Cluster): Promise<boolean> {
  return isServed(cluster, { group: "admissionregistration.k8s.io", version: "v1" }, "mutatingadmissionpolicies");
}
