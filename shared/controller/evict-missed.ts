/**
 * Evicts pods that missed their sidecars, where somebody asks for that, so that their owners make them anew. An eviction
 * is reserved in the ledger as a patch is: other passes count it as down, and a late one lands under no later spec.
 */
import type { KubernetesObject, Pod } from "../api/kubernetes.ts";
import { planEvictions } from "../core/missed-injection/plan-evictions.ts";
import { isInjected } from "../core/pod/is-matched.ts";
import { alsoReserved, type Ledger, type PodState, type Reservation, withoutThese } from "../core/upgrade/ledger.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, PODS } from "../kube/port.ts";
import { attempt, type Outcome } from "./act.ts";
import { mapLimited } from "./concurrency.ts";
import { swapLedger } from "./ledger-store.ts";
import { type Look, type RolloutContext, readPod, subjectOf, WRITES_AT_ONCE } from "./look.ts";

interface Eviction extends KubernetesObject {
  readonly deleteOptions: { readonly preconditions: { readonly uid: string; readonly resourceVersion: string } };
}

/**
 * How many were. PodDisruptionBudgets hold: a pod that one keeps is left for a later pass. `look` is that of a round that
 * has just ended, so its ledger says what may be written to at this moment.
 */
export async function evictMissed(context: RolloutContext, look: Look): Promise<number> {
  const wanted = await readWanted(context, look);
  const { ledger, added } = alsoReserved(look.stored.ledger, wanted, subjectOf(look.sidecarSet));
  if (added.length === 0 || !(await swap(context, look, ledger))) return 0;
  const open = new Set<Reservation>();
  let evicted = 0;
  for (const reservation of added) {
    const outcome = await attempt(() => evict(context.cluster, reservation));
    if (outcome.kind === "done") evicted++;
    if (await mayStillLand(context, look, reservation, outcome)) open.add(reservation);
    if (!isTrouble(outcome)) continue;
    noteProblem(context, reservation, outcome);
    // The others would fare no better.
    break;
  }
  // Lost: then somebody else has the ledger, and fences what is left.
  await swap(context, look, withoutThese(look.stored.ledger, new Set(added.filter((one) => !open.has(one)))));
  return evicted;
}

async function readWanted(context: RolloutContext, look: Look): Promise<readonly PodState[]> {
  const { sidecarSet, observed, stored, missed = [] } = look;
  const reserved = new Set(stored.ledger.reservations.map(({ uid }) => uid));
  const planned = planEvictions(sidecarSet, observed.view.glimpses, missed, reserved);
  const states = await mapLimited(planned, WRITES_AT_ONCE, (pod) =>
    readState(context.cluster, pod, sidecarSet.metadata?.name ?? ""),
  );
  return states.filter((state) => state !== undefined);
}

/** undefined: it is not what it was, or would not come back without a controller. */
async function readState(cluster: Cluster, { metadata }: Pod, sidecarSet: string): Promise<PodState | undefined> {
  const { namespace = "", name = "", uid = "" } = metadata ?? {};
  const pod = await cluster.get<Pod>(PODS, { namespace, name }).catch((error: unknown) => {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  });
  const isOwned = pod?.metadata?.ownerReferences?.some(({ controller }) => controller === true) === true;
  if (!isOwned || pod?.metadata?.uid !== uid || isInjected(pod, sidecarSet)) return undefined;
  return { namespace, name, uid, resourceVersion: pod.metadata.resourceVersion ?? "" };
}

async function swap(context: RolloutContext, look: Look, next: Ledger): Promise<boolean> {
  const place = { namespace: context.kruiseNamespace, owner: look.sidecarSet };
  const stored = await swapLedger(context.cluster, place, look.stored, next);
  if (stored) look.stored = stored;
  return stored !== undefined;
}

async function evict(cluster: Cluster, { namespace, name, uid, resourceVersion }: Reservation): Promise<undefined> {
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  };
  await cluster.create<Eviction>(PODS, eviction, { subresource: "eviction" });
  return undefined;
}

/**
 * False when it is seen to be through, or was refused: nobody but who reserves an eviction sends it, and once.
 */
async function mayStillLand(
  context: RolloutContext,
  look: Look,
  reservation: Reservation,
  { kind }: Outcome,
): Promise<boolean> {
  if (kind === "refused" || kind === "conflict") return false;
  await readPod(context, look, reservation);
  return look.observed.view.versionOf(reservation.uid) === reservation.resourceVersion;
}

type Failed = Exclude<Outcome, { kind: "done" }>;

/** Not when it is gone, has changed meanwhile, or is kept by a PodDisruptionBudget. */
function isTrouble(outcome: Outcome): outcome is Failed {
  return outcome.kind !== "done" && !isKubeError(outcome.error, 404, 409, 429);
}

function noteProblem({ tally }: RolloutContext, { namespace, name }: PodState, { error }: Failed): void {
  const hint = error.code === 403 ? " (infra/rbac/optional/eviction.yaml permits it)" : "";
  tally.problems.push({ namespace, name, message: `is not evicted: ${error.message}${hint}` });
}
