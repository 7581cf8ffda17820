/** What becomes of reservations whose SidecarSet is gone. */
import { type Reservation, withoutThese } from "../../core/ledger.ts";
import { isLater } from "../../go/resource-version.ts";
import { about, isKubeError, type KubeError } from "../../kube/error.ts";
import type { Cluster } from "../../kube/port.ts";
import { attempt, type Outcome } from "./act.ts";
import { fencePod } from "./fence-pod.ts";
import { readLedger, swapLedger } from "./ledger-store.ts";
import { fencePatch } from "./pod-patch.ts";
import { resourceOf } from "./restart-workload.ts";

/**
 * Empties the ledger of a SidecarSet that is gone, once what is reserved there can't be written to any more: nothing
 * else would let the ConfigMap go, nor the namespace it is in. What can't be seen to be through is left for the next of
 * that name. @throws KubeError
 */
export async function releaseOrphan(cluster: Cluster, namespace: string, name: string): Promise<void> {
  const stored = await readLedger(cluster, namespace, name);
  const { uid, reservations } = stored.ledger;
  if (reservations.length === 0) return;
  const fenced = new Set<Reservation>();
  let refusal: KubeError | undefined;
  for (const reservation of reservations) {
    const outcome = await fenceOff(cluster, reservation);
    if (outcome === true) fenced.add(reservation);
    else if (outcome && isKubeError(outcome, 403)) refusal ??= outcome;
  }
  const owner = { metadata: { name, uid } };
  await swapLedger(cluster, { namespace, owner }, stored, withoutThese(stored.ledger, fenced));
  if (refusal) throw about(`what is reserved of ${name}, which is gone, can't be released`, refusal);
}

/** True when no patch for the reserved state can land any more; else why that can't be told. */
async function fenceOff(cluster: Cluster, reservation: Reservation): Promise<true | KubeError> {
  try {
    const { metadata } = await cluster.get(resourceOf(reservation), reservation);
    if (metadata?.uid !== reservation.uid || isLater(metadata.resourceVersion, reservation.resourceVersion))
      return true;
    const isFirst = metadata.annotations === undefined;
    const outcome = await fence(cluster, reservation, isFirst);
    return outcome.kind === "done" || outcome.kind === "gone" ? true : outcome.error;
  } catch (error) {
    if (isKubeError(error, 404)) return true;
    // Somebody wrote to it just now, or it can't be told: a later pass sees.
    if (isKubeError(error)) return error;
    throw error;
  }
}

function fence(cluster: Cluster, reservation: Reservation, isFirst: boolean): Promise<Outcome> {
  if (reservation.workload === undefined) return fencePod(cluster, reservation, isFirst);
  const patch = fencePatch(reservation, isFirst);
  return attempt(() => cluster.patch(resourceOf(reservation), reservation, patch, { answer: "metadata" }));
}
