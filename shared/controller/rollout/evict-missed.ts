/**
 * Evicts pods that missed their sidecars, where somebody asks for that, so that their owners recreate them. An eviction
 * is reserved in the ledger as a patch is: other passes count it as down, and a late one lands under no later spec.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { mayHaveMissed } from "../../core/injection/missed/missed-pods.ts";
import {
  alsoReserved,
  type Ledger,
  type PodState,
  type Reservation,
  subjectOf,
  withoutThese,
} from "../../core/ledger.ts";
import { isRunningAndReady } from "../../core/pod/is-ready.ts";
import { controllerOf, mayEvictMissed } from "../../core/pod/replaced.ts";
import { planEvictions } from "../../core/rollout/missed/plan-evictions.ts";
import { isKubeError } from "../../kube/error.ts";
import { mapLimited } from "../loop/concurrency.ts";
import { attempt, type Outcome } from "./act.ts";
import { departedOf } from "./departures.ts";
import { evictionMessage, evictPod, isKept } from "./evict-pod.ts";
import { forgetKept, keptOwners, noteKept } from "./kept-owners.ts";
import { swapLedger } from "./ledger-store.ts";
import { type Context, readPod, type Snapshot, WRITES_AT_ONCE } from "./observe.ts";
import { noteProblem } from "./pod-trouble.ts";

/** Looked at in a pass: those that cannot go cost nobody else a place, as far as this goes. */
const MOST_TRIED = 200;

interface Evictions {
  evicted: number;
  /** uids of pods that had their turn */
  readonly tried: Set<string>;
  /** one was not what it had been, so perhaps it is down, or was gone at once, and counts no more: nobody gets its place */
  isStale: boolean;
  /** nobody is to be tried any more */
  isOver: boolean;
  /** a swap was lost: what is reserved now is not known, so nothing may be written any more by what was looked at */
  isOutdated: boolean;
}

interface Wanted extends PodState {
  /** uid of its controller */
  readonly owner: string;
}

/**
 * How many were, and whether `look` holds no more. PodDisruptionBudgets hold: a pod that one keeps is left for a later
 * pass, and the next in line has its place. `look` is that of a round that has just ended, so its ledger says what may be
 * written to at this moment.
 */
export async function evictMissed(
  context: Context,
  snapshot: Snapshot,
): Promise<Pick<Evictions, "evicted" | "isOutdated">> {
  const evictions: Evictions = {
    evicted: 0,
    tried: new Set(),
    isStale: false,
    isOver: false,
    isOutdated: false,
  };
  while (!evictions.isOver && evictions.tried.size < MOST_TRIED) await evictNext(context, snapshot, evictions);
  return evictions;
}

/** As many as there is room for now. */
async function evictNext(context: Context, snapshot: Snapshot, evictions: Evictions): Promise<void> {
  const before = evictions.evicted;
  const planned = planNext(context, snapshot, evictions);
  const wanted = await readWanted(context, snapshot, planned, evictions);
  if (wanted.length > 0) await evictThese(context, snapshot, wanted, evictions);
  evictions.isOver ||= evictions.isStale || evictions.evicted - before === planned.length;
}

function planNext(context: Context, snapshot: Snapshot, { tried }: Evictions): readonly Pod[] {
  const { sidecarSet, observed, stored, missed = [] } = snapshot;
  // How many pods a restart takes down is not known.
  if (stored.ledger.restarted) return [];
  const awaited = departedOf(context, snapshot, stored.ledger.reservations).length;
  const reserved = new Set(stored.ledger.reservations.map(({ uid }) => uid));
  const left = missed.filter(({ metadata }) => !tried.has(metadata?.uid ?? ""));
  return planEvictions(sidecarSet, observed.view.records, left, { reserved, awaited });
}

async function evictThese(
  context: Context,
  snapshot: Snapshot,
  wanted: readonly Wanted[],
  evictions: Evictions,
): Promise<void> {
  const { ledger, added } = alsoReserved(snapshot.stored.ledger, wanted, subjectOf(snapshot.sidecarSet));
  evictions.isOver ||= added.length === 0;
  if (evictions.isOver || !(await swap(context, snapshot, evictions, ledger))) return;
  const open = new Set<Reservation>();
  for (const reservation of added) {
    const outcome = await attempt(() => evictPod(context.cluster, reservation));
    count(context, evictions, { reservation, wanted, outcome });
    if (await mayStillLand(context, snapshot, reservation, outcome)) open.add(reservation);
    evictions.isStale ||= snapshot.observed.view.versionOf(reservation.uid) === null;
    if (evictions.isOver) break;
  }
  const closed = new Set(added.filter((one) => !open.has(one)));
  await swap(context, snapshot, evictions, withoutThese(snapshot.stored.ledger, closed));
}

interface Tried {
  readonly reservation: Reservation;
  readonly wanted: readonly Wanted[];
  readonly outcome: Outcome;
}

function count(context: Context, evictions: Evictions, { reservation, wanted, outcome }: Tried): void {
  const departure = { owner: wanted.find(({ uid }) => uid === reservation.uid)?.owner ?? "" };
  if (outcome.kind === "done") {
    evictions.evicted++;
    forgetKept(context, { departure });
  }
  // Others of its controller would fare no better, and for a while nor would it.
  else if (isKept(outcome)) noteKept(context, { departure });
  else if (isKubeError(outcome.error, 404, 409)) evictions.isStale = true;
  else {
    // The others would fare no better.
    evictions.isOver = true;
    if (!isKubeError(outcome.error, 429)) noteProblem(context, reservation, evictionMessage(outcome));
  }
}

async function readWanted(
  context: Context,
  snapshot: Snapshot,
  planned: readonly Pod[],
  { tried }: Evictions,
): Promise<readonly Wanted[]> {
  for (const { metadata } of planned) tried.add(metadata?.uid ?? "");
  const read = await mapLimited(planned, WRITES_AT_ONCE, (pod) => readWantedOne(context, snapshot, pod));
  const kept = keptOwners(context);
  return read.filter((one) => one !== undefined).filter(({ owner }) => !kept.has(owner));
}

/**
 * undefined: it has not missed anything any more, or would not come back without a controller. One that was down cost
 * nothing: where it is ready by now, it would.
 */
async function readWantedOne(context: Context, snapshot: Snapshot, planned: Pod): Promise<Wanted | undefined> {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = planned.metadata ?? {};
  const pod = await readPod(context, snapshot, { namespace, name, uid, resourceVersion });
  if (!pod || !snapshot.observed.scope.isSelected(pod) || mayHaveMissed([pod], snapshot.sidecarSet, "").length === 0)
    return undefined;
  const owner = controllerOf(pod)?.uid;
  if (
    owner === undefined ||
    !mayEvictMissed(pod, snapshot.sidecarSet) ||
    (isRunningAndReady(pod) && !isRunningAndReady(planned))
  )
    return undefined;
  return { namespace, name, uid, resourceVersion: pod.metadata?.resourceVersion ?? "", owner };
}

/** False: lost. Then the next pass, or the one that has the ledger now, fences what is left. */
async function swap(context: Context, snapshot: Snapshot, evictions: Evictions, next: Ledger): Promise<boolean> {
  const place = { namespace: context.kruiseNamespace, owner: snapshot.sidecarSet };
  const stored = await swapLedger(context.cluster, place, snapshot.stored, next);
  if (stored) snapshot.stored = stored;
  else evictions.isOver = evictions.isOutdated = true;
  return stored !== undefined;
}

/**
 * False when it is seen to be through, or was refused: nobody but who reserves an eviction sends it, and once.
 */
async function mayStillLand(
  context: Context,
  snapshot: Snapshot,
  reservation: Reservation,
  { kind }: Outcome,
): Promise<boolean> {
  if (kind === "refused" || kind === "conflict") return false;
  await readPod(context, snapshot, reservation);
  return snapshot.observed.view.versionOf(reservation.uid) === reservation.resourceVersion;
}
