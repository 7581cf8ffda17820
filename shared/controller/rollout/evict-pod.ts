/** One eviction, on condition that the pod is still what it was: the API server asks PodDisruptionBudgets first. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import type { PodState } from "../../core/ledger.ts";
import { isKubeError, KubeError } from "../../kube/error.ts";
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
  try {
    await cluster.create<Eviction>(PODS, eviction, { subresource: "eviction" });
  } catch (error) {
    throw isForTwoBudgets(error) ? certainlyNot(error) : error;
  }
  return undefined;
}

/** How kube-apiserver answers for a pod that two PodDisruptionBudgets select: with code 500, before it does anything. */
const TWO_BUDGETS = "This pod has more than one PodDisruptionBudget";

function isForTwoBudgets(error: unknown): error is KubeError {
  return isKubeError(error, 500) && error.message.startsWith(TWO_BUDGETS);
}

function certainlyNot(cause: KubeError): KubeError {
  const { code, reason, causes } = cause;
  return new KubeError(cause.message, { code, reason, causes, isOutcomeKnown: true, cause });
}

/**
 * True when a PodDisruptionBudget refuses the eviction. A budget that its controller has not processed yet says when to
 * come again, as an API server that has too much to do does; only the cause tells the two apart.
 */
export function isKept({ error }: NotDone): boolean {
  if (error.code !== 429) return false;
  return error.retryAfterSeconds === undefined || error.causes.some(({ reason }) => reason === "DisruptionBudget");
}

/** What a refused eviction says to people. */
export function evictionMessage({ error }: NotDone): string {
  const hint = isKubeError(error, 403) ? " (infra/rbac/optional/eviction.yaml permits it)" : "";
  const why = error.causes.map(({ message }) => (message === "" ? "" : ` ${message}`)).join("");
  return `is not evicted: ${error.message}${why}${hint}`;
}
