/** What the API server serves, as its discovery says. */
import type { PolicyVersion } from "../../core/injection/compile/compile.ts";
import { isKubeError } from "../../kube/error.ts";
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

/** The newest version of policies that inject: v1 from Kubernetes 1.36 on; undefined: none is served. @throws KubeError */
export async function servedPolicyVersion(cluster: Cluster): Promise<PolicyVersion | undefined> {
  for (const version of ["v1", "v1beta1"] as const) {
    const place = { group: "admissionregistration.k8s.io", version };
    const answer = isServed(cluster, place, "mutatingadmissionpolicies").catch((error: unknown) => {
      if (isKubeError(error, 404)) return false;
      throw error;
    });
    if (await answer) return version;
  }
  return undefined;
}
