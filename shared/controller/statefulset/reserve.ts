/** What a round reserves of a set in its ledger, and how it fences what is not wanted any more. */
import { FENCE_ANNOTATION } from "../../api/names.ts";
import { isSameLedger, type Ledger, type PodState, type Reservation } from "../../core/ledger.ts";
import type { SetPlan } from "../../core/statefulset/plan/plan-set.ts";
import { isClaimState, takenAway } from "../../core/statefulset/replicas.ts";
import { isKubeError } from "../../kube/error.ts";
import { swapLedger } from "../rollout/ledger-store.ts";
import { OutdatedSnapshot } from "./act.ts";
import { keyOf, resourceOf, type SetContext, type SetSnapshot } from "./observe.ts";

/** Each object once, in the state in which it was listed. */
export function wantedStates({ writes }: SetPlan): readonly PodState[] {
  const states = new Map<string, PodState>();
  for (const state of writes.map(takenAway)) if (state && !states.has(state.uid)) states.set(state.uid, state);
  return [...states.values()];
}

export async function store({ cluster, key }: SetContext, snapshot: SetSnapshot, ledger: Ledger): Promise<void> {
  if (isSameLedger(snapshot.stored.ledger, ledger)) return;
  const place = { namespace: key.namespace, owner: snapshot.set, kind: "statefulset" } as const;
  const stored = await swapLedger(cluster, place, snapshot.stored, ledger);
  if (!stored) throw new OutdatedSnapshot("another pass has written the ledger");
  snapshot.stored = stored;
}

/** Moves the object's resourceVersion and nothing else, so that a late write fails. */
export async function fence({ cluster, tally }: SetContext, reservation: Reservation): Promise<void> {
  const { uid, resourceVersion } = reservation;
  const own = isClaimState(reservation) ? uid.slice(uid.indexOf(":") + 1) : uid;
  const metadata = { uid: own, resourceVersion, annotations: { [FENCE_ANNOTATION]: resourceVersion } };
  const patch = { type: "merge", body: { metadata } } as const;
  try {
    await cluster.patch(resourceOf(reservation), keyOf(reservation), patch, { answer: "metadata" });
    tally.fenced++;
  } catch (error) {
    // Something else has moved it, or that is not known: the next snapshot shows it.
    if (!isKubeError(error, 404, 409, 422) && !(isKubeError(error) && !error.isOutcomeKnown)) throw error;
  }
}
