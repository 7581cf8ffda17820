/** Which kubelet each node has: read only where a native sidecar is about to be upgraded in place. */
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { nativeSidecars } from "../../core/pod/native-sidecars.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, NODES } from "../../kube/port.ts";
import { listAll } from "./observe-pods.ts";

interface Node extends KubernetesObject {
  readonly status?: { readonly nodeInfo?: { readonly kubeletVersion?: string } };
}

export type Kubelets = ReadonlyMap<string, string>;

export const NO_KUBELETS: Kubelets = new Map();

/** Some native sidecar of some pod is not what the SidecarSet says. */
function isNeeded(sidecarSet: SidecarSet, pods: Iterable<Pod>): boolean {
  const images = new Map(nativeSidecars(sidecarSet).map(({ name, image }) => [name, image]));
  for (const { spec } of pods)
    if (spec.initContainers?.some(({ name, image }) => (images.get(name) ?? image) !== image)) return true;
  return false;
}

/** Versions by node; none where nobody needs them. @throws Error that says which role is missing, and KubeError */
export async function readKubelets(cluster: Cluster, sidecarSet: SidecarSet, pods: Iterable<Pod>): Promise<Kubelets> {
  return isNeeded(sidecarSet, pods) ? await listKubelets(cluster) : NO_KUBELETS;
}

/** Versions by node. @throws the same */
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
