/** Fences a pod: changes its resourceVersion, so that no late write to the reserved version can land. */
import type { Pod } from "../../api/kubernetes.ts";
import type { PodState } from "../../core/ledger.ts";
import { ifThere } from "../../kube/error.ts";
import { type Cluster, type PartialObject, PODS } from "../../kube/port.ts";
import { attempt, type Outcome } from "./act.ts";
import { fencePatch, statusFencePatch } from "./pod-patch.ts";
import { isBusy } from "./pod-trouble.ts";

/**
 * Writes an annotation. If the API server refuses it, writes a condition to the status. The size limit of annotations,
 * and most policies and webhooks, do not concern pods/status. If both fail, returns the first outcome. `isSlow`: an
 * earlier write had no answer, so the status comes first, and the annotation only if that fails.
 */
export async function fencePod(cluster: Cluster, state: PodState, isSlow = false): Promise<Outcome> {
  const first = isSlow ? await fenceByStatus(cluster, state) : undefined;
  if (first?.kind === "done") return first;
  const patch = fencePatch(state);
  const outcome = await attempt(() => cluster.patch<PartialObject>(PODS, state, patch, { answer: "metadata" }));
  if (isSlow || !mayBeRefused(outcome)) return outcome;
  const second = await fenceByStatus(cluster, state);
  return second?.kind === "done" ? second : outcome;
}

/** Fences by the status; undefined: the pod is gone, or its state is not the reserved one. */
async function fenceByStatus(cluster: Cluster, state: PodState): Promise<Outcome | undefined> {
  const pod = await ifThere(cluster.get<Pod>(PODS, { namespace: state.namespace, name: state.name }));
  const { uid, resourceVersion } = pod?.metadata ?? {};
  if (uid !== state.uid || resourceVersion !== state.resourceVersion) return undefined;
  const patch = statusFencePatch(state, pod?.status?.conditions);
  return await attempt(() =>
    cluster.patch<PartialObject>(PODS, state, patch, { subresource: "status", answer: "metadata" }),
  );
}

/**
 * True if another write may succeed. 422 also means annotations that are too long, 500 a webhook that cannot be called,
 * and a timeout a slow one. A first write that arrives late is a fence too.
 */
function mayBeRefused(outcome: Outcome): boolean {
  if (outcome.kind === "done") return false;
  const { kind, error } = outcome;
  if (kind === "unknown") return error.code >= 500 || error.reason === "Timeout";
  return error.code !== 0 && !isBusy(outcome);
}
