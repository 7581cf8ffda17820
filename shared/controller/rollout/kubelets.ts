/** The kubelet versions by node. They are read only if a native sidecar is about to be upgraded in place. */
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { nativeSidecars } from "../../core/pod/native-sidecars.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, NODES, type Resource } from "../../kube/port.ts";
import { listAll } from "./observe-pods.ts";

interface Node extends KubernetesObject {
  readonly status?: { readonly nodeInfo?: { readonly kubeletVersion?: string } };
}

export type Kubelets = ReadonlyMap<string, string>;

export const NO_KUBELETS: Kubelets = new Map();

/** True when a native sidecar of some pod differs from the SidecarSet. */
function isNeeded(sidecarSet: SidecarSet, pods: Iterable<Pod>): boolean {
  const images = new Map(nativeSidecars(sidecarSet).map(({ name, image }) => [name, image]));
  for (const { spec } of pods)
    if (spec.initContainers?.some(({ name, image }) => (images.get(name) ?? image) !== image)) return true;
  return false;
}

/** Versions by node; empty when not needed. @throws Error that names the missing role, and KubeError */
export async function readKubelets(cluster: Cluster, sidecarSet: SidecarSet, pods: Iterable<Pod>): Promise<Kubelets> {
  return isNeeded(sidecarSet, pods) ? await listKubelets(cluster) : NO_KUBELETS;
}

/** Versions by node. @throws as `readKubelets` */
export async function listKubelets(cluster: Cluster): Promise<Kubelets> {
  try {
    const { items } = await listAll<Node, readonly [string, string]>(cluster, NODES, {}, ({ metadata, status }) => [
      metadata?.name ?? "",
      status?.nodeInfo?.kubeletVersion ?? "",
    ]);
    return new Map(items);
  } catch (error) {
    if (!isKubeError(error, 403)) throw error;
    const role = "apply infra/rbac/optional/native-sidecars.yaml";
    throw new Error(`nodes may not be listed, which gate NativeSidecarInPlaceUpdate needs: ${role}`, { cause: error });
  }
}

/** The API server's resources in its discovery. */
interface Discovery {
  readonly resources?: readonly { readonly name: string }[] | null;
}

/** True if the resource is served. If the list lacks it, the discovery document is read. @throws KubeError */
async function isServed(cluster: Cluster, place: Pick<Resource, "group" | "version">, name: string): Promise<boolean> {
  const { resources } = (await cluster.list({ ...place, plural: "", namespaced: false })) as Discovery;
  return resources?.some((one) => one.name === name) ?? false;
}

/**
 * True if resources of running pods may change, since Kubernetes 1.33. A pass calls it only if resources will change.
 * @throws KubeError
 */
export function isResizeServed(cluster: Cluster): Promise<boolean> {
  return isServed(cluster, { group: "", version: "v1" }, "pods/resize");
}

/** True if the output of `compile` can be applied, since Kubernetes 1.36. @throws KubeError */
export function isMutatingPolicyServed(cluster: Cluster): Promise<boolean> {
  return isServed(cluster, { group: "admissionregistration.k8s.io", version: "v1" }, "mutatingadmissionpolicies");
}
