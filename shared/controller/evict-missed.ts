/** Evicts pods that missed their sidecars, where somebody asks for that, so that their owners make them anew. */
import type { KubernetesObject, Pod } from "../api/kubernetes.ts";
import { planEvictions } from "../core/missed-injection/plan-evictions.ts";
import { isInjected } from "../core/pod/is-matched.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, PODS } from "../kube/port.ts";
import type { Look, RolloutContext } from "./look.ts";

interface Eviction extends KubernetesObject {
  readonly deleteOptions: { readonly preconditions: { readonly uid: string; readonly resourceVersion: string } };
}

/** How many were. PodDisruptionBudgets hold: a pod that one keeps is left for a later pass. */
export async function evictMissed({ cluster, tally }: RolloutContext, look: Look): Promise<number> {
  const { sidecarSet, observed, missed = [] } = look;
  let evicted = 0;
  for (const pod of planEvictions(sidecarSet, observed.view.glimpses, missed)) {
    const { namespace = "", name = "" } = pod.metadata ?? {};
    const outcome = await evict(cluster, pod, sidecarSet.metadata?.name ?? "").catch(problemOf);
    if (outcome === true) evicted++;
    if (typeof outcome !== "string") continue;
    // The others would fare no better.
    tally.problems.push({ namespace, name, message: `is not evicted: ${outcome}` });
    break;
  }
  return evicted;
}

/** False when it is gone, has changed meanwhile, or is kept by a PodDisruptionBudget. */
function problemOf(error: unknown): string | false {
  if (!isKubeError(error)) throw error;
  const { code, message } = error;
  if (code === 404 || code === 409 || code === 429) return false;
  return message + (code === 403 ? " (infra/rbac/optional/eviction.yaml permits it)" : "");
}

/** A pod without a controller would not come back. */
async function evict(cluster: Cluster, { metadata }: Pod, sidecarSet: string): Promise<boolean> {
  const { namespace = "", name = "", uid = "" } = metadata ?? {};
  const pod = await cluster.get<Pod>(PODS, { namespace, name });
  const isOwned = pod.metadata?.ownerReferences?.some(({ controller }) => controller === true) === true;
  if (pod.metadata?.uid !== uid || !isOwned || isInjected(pod, sidecarSet)) return false;
  const preconditions = { uid, resourceVersion: pod.metadata.resourceVersion ?? "" };
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions },
  };
  await cluster.create<Eviction>(PODS, eviction, { subresource: "eviction" });
  return true;
}
