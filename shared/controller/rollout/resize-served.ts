/** Whether the API server changes the resources of pods that run: its discovery says so, from Kubernetes 1.33 on. */
import type { Cluster, Resource } from "../../kube/port.ts";

/** Where the discovery document of core/v1 is: what a list without a resource reads. */
const CORE_V1: Resource = { group: "", version: "v1", plural: "", namespaced: false };

interface Discovery {
  readonly resources?: readonly { readonly name: string }[] | null;
}

/** One call, which a pass makes only where resources are to change. @throws KubeError */
export async function isResizeServed(cluster: Cluster): Promise<boolean> {
  const { resources } = (await cluster.list(CORE_V1)) as Discovery;
  return resources?.some(({ name }) => name === "pods/resize") ?? false;
}
