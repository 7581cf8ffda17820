/** One eviction, on condition that the pod is still what it was: the API server asks PodDisruptionBudgets first. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import type { PodState } from "../../core/ledger.ts";
import { isKubeError, type KubeError } from "../../kube/error.ts";
import { type Cluster, PODS } from "../../kube/port.ts";

interface NotDone {
  readonly error: KubeError;
}

interface Eviction extends KubernetesObject {
  readonly deleteOptions: { readonly preconditions: { readonly uid: string; readonly resourceVersion: string } };
}

export async function evictPod(
  cluster: Cluster,
  { namespace, name, uid, resourceVersion }: PodState,
): Promise<undefined> {
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  };
  await cluster.create<Eviction>(PODS, eviction, { subresource: "eviction" });
  return undefined;
}

/** By a PodDisruptionBudget, which does not say when to come again, as an API server does that has too much to do. */
export function isKept({ error }: NotDone): boolean {
  return error.code === 429 && error.retryAfterSeconds === undefined;
}

/** What a refused eviction says to people. */
export function evictionMessage({ error }: NotDone): string {
  const hint = isKubeError(error, 403) ? " (infra/rbac/optional/eviction.yaml permits it)" : "";
  return `is not evicted: ${error.message}${hint}`;
}
