/**
 * Evicts pods that missed their sidecars, on request, so that their owners recreate them. The ledger reserves evictions
 * like patches: other passes count the pod as down, and a late eviction lands under no later spec.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { mayHaveMissed } from "../../core/injection/missed/missed-pods.ts";
import {
  alsoReserved,
  type Ledger,
  ledgerSubject,
  type PodState,
  type Reservation,
  withoutThese,
} from "../../core/ledger.ts";
import { isRunningAndReady } from "../../core/pod/is-ready.ts";
import { controllerOf, mayEvictMissed, ownerKey } from "../../core/pod/replaced.ts";
import type { Hold } from "../../core/rollout/hold.ts";
import { planEvictions } from "../../core/rollout/rules/missed/plan-evictions.ts";
import { openRestarts } from "../../core/rollout/rules/restarts/workload-object.ts";
import { isDenied } from "../../kube/error.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { attempt, type NotDone, type Outcome } from "./act.ts";
import { departedOf, forgetKept, keptOwners, noteKept, serverTimestamp } from "./departures.ts";
import { fencePod } from "./fence-pod.ts";
import { restartingOf } from "./known-workloads.ts";
import { swapLedger } from "./ledger-store.ts";
import { type Context, readPod, type Snapshot, WRITES_AT_ONCE } from "./observe.ts";
import { evictionMessage, evictPod, isKept } from "./pod-patch.ts";
import { isBusy } from "./pod-trouble.ts";
import { noteProblem } from "./report.ts";

/** Limit of tries in a pass. Up to it, pods that cannot go take no place from others. */
const MOST_TRIED = 200;
/** Limit of answers in a namespace that may be trouble of the API server. Its other pods wait for the next pass. */
const MOST_UNCLEAR = 3;
/** Number of namespaces with such answers at which other pods would get them too: the API server is in trouble. */
const MOST_UNCLEAR_NAMESPACES = 3;

interface Evictions {
  evicted: number;
  /** uids of pods that were tried */
  readonly tried: Set<string>;
  /** numbers of refused evictions, by namespace */
  readonly refused: Map<string, number>;
  /** numbers of answers that may come from trouble of the API server, by namespace */
  readonly unclear: Map<string, number>;
  /** true: a pod was gone at once and no longer counts, so its place stays empty */
  isStale: boolean;
  /** true: no more pods are tried */
  isOver: boolean;
  /** true: a write of the ledger was lost, so the reservations are unknown and this look may write nothing */
  isOutdated: boolean;
}

interface Wanted extends PodState {
  /** uid of the pod's controller */
  readonly owner: string;
}

/**
 * Evicts pods that missed their sidecars. Returns how many, and whether `look` is outdated now. `holds`: holds of that
 * look's decision. A pod that a PodDisruptionBudget, a missing right or a webhook protects stays for a later pass, and
 * the next pod takes its place. `look` comes from a round that has just ended, so its ledger says what may be written
 * now.
 */
export async function evictMissed(
  context: Context,
  snapshot: Snapshot,
  holds: readonly Hold[],
): Promise<Pick<Evictions, "evicted" | "isOutdated">> {
  const evictions: Evictions = {
    evicted: 0,
    tried: new Set(),
    refused: new Map(),
    unclear: new Map(),
    isStale: false,
    isOver: false,
    isOutdated: false,
  };
  while (!evictions.isOver && evictions.tried.size < MOST_TRIED) await evictNext(context, snapshot, evictions, holds);
  return evictions;
}

/** Evicts as many pods as there is room for. */
async function evictNext(
  context: Context,
  snapshot: Snapshot,
  evictions: Evictions,
  holds: readonly Hold[],
): Promise<void> {
  const planned = planNext(context, snapshot, evictions, holds);
  const wanted = await readWanted(context, snapshot, planned, evictions);
  if (wanted.length > 0) await evictThese(context, snapshot, wanted, evictions);
  evictions.isOver ||= evictions.isStale || planned.length === 0;
}

function planNext(context: Context, snapshot: Snapshot, evictions: Evictions, holds: readonly Hold[]): readonly Pod[] {
  const { sidecarSet, observed, stored, missed = [] } = snapshot;
  const { tried, refused } = evictions;
  const reserved = new Set(stored.ledger.reservations.map(({ uid }) => uid));
  const restarting = restartingOf(snapshot);
  const now = serverTimestamp(context);
  // It is unknown how many pods a restart takes down.
  if (restarting && openRestarts(restarting, { reserved, pods: observed.view.records, now }).length > 0) return [];
  const held = { reserved, holds, now };
  const awaited = departedOf(context, snapshot, stored.ledger.reservations).open.length;
  const left = missed.filter(
    ({ metadata }) => !tried.has(metadata?.uid ?? "") && !isUnclear(evictions, metadata ?? {}),
  );
  // Namespaces with fewer refusals come first, so that one with many protected pods does not use up the tries.
  const refusals = ({ metadata }: Pod) => refused.get(metadata?.namespace ?? "") ?? 0;
  const groups = Map.groupBy(left, refusals);
  for (const count of [...groups.keys()].toSorted((a, b) => a - b)) {
    const planned = planEvictions(sidecarSet, observed.view.records, groups.get(count) ?? [], { ...held, awaited });
    if (planned.length > 0) return planned.slice(0, MOST_TRIED - tried.size);
  }
  return [];
}

function isUnclear({ unclear }: Evictions, { namespace = "" }: { readonly namespace?: string }): boolean {
  return (unclear.get(namespace) ?? 0) >= MOST_UNCLEAR;
}

async function evictThese(
  context: Context,
  snapshot: Snapshot,
  wanted: readonly Wanted[],
  evictions: Evictions,
): Promise<void> {
  const { ledger, added } = alsoReserved(snapshot.stored.ledger, wanted, ledgerSubject(snapshot.sidecarSet));
  evictions.isOver ||= added.length === 0;
  if (evictions.isOver || !(await swap(context, snapshot, evictions, ledger))) return;
  const open = new Set<Reservation>();
  for (const reservation of added) {
    if (evictions.isOver) break;
    const owner = wanted.find(({ uid }) => uid === reservation.uid)?.owner ?? "";
    if (await evictOne(context, snapshot, evictions, { reservation, owner })) open.add(reservation);
    evictions.isStale ||= snapshot.observed.view.versionOf(reservation.uid) === null;
  }
  const closed = new Set(added.filter((one) => !open.has(one)));
  await swap(context, snapshot, evictions, withoutThese(snapshot.stored.ledger, closed));
}

interface Turn {
  readonly reservation: Reservation;
  /** uid of the pod's controller */
  readonly owner: string;
}

/** Evicts a pod; true: the eviction may still take the pod down later. */
async function evictOne(context: Context, snapshot: Snapshot, evictions: Evictions, turn: Turn): Promise<boolean> {
  const { reservation, owner } = turn;
  // A refusal for its controller or namespace would happen again for this pod.
  if (keptOwners(context).has(ownerKey(reservation.namespace, owner)) || isUnclear(evictions, reservation))
    return false;
  const outcome = await attempt(() => evictPod(context.cluster, reservation));
  // Policies and webhooks also answer 404, 409 and 422 for an unchanged pod.
  const isOfAnother = outcome.kind === "conflict" || outcome.kind === "gone";
  const hasMoved = isOfAnother && (await hasChanged(context, snapshot, reservation));
  if (!hasMoved) count(context, evictions, turn, outcome);
  return !isOfAnother && (await mayStillLand(context, snapshot, reservation, outcome));
}

function count(context: Context, evictions: Evictions, { reservation, owner }: Turn, outcome: Outcome): void {
  const departure = { namespace: reservation.namespace, owner };
  if (outcome.kind === "done") {
    evictions.evicted++;
    forgetKept(context, { departure });
    return;
  }
  noteProblem(context, reservation, evictionMessage(outcome));
  if (isOfEverybody(outcome)) {
    evictions.isOver = true;
    return;
  }
  // The cause affects other pods of the same controller now, and this pod for a while.
  noteKept(context, { departure });
  add(evictions.refused, reservation.namespace);
  if (!mayBeBusy(outcome)) return;
  add(evictions.unclear, reservation.namespace);
  evictions.isOver ||= evictions.unclear.size >= MOST_UNCLEAR_NAMESPACES;
}

/** True if nothing could be sent, or the credentials are not accepted: any other eviction would fail too. */
function isOfEverybody({ kind, error }: NotDone): boolean {
  return (error.code === 0 && kind !== "unknown") || (error.code === 401 && !isDenied(error.message));
}

/** True for answers that an API server in trouble gives, and that a webhook or a proxy can give for one pod as well. */
function mayBeBusy(outcome: NotDone): boolean {
  return outcome.kind === "unknown" || (isBusy(outcome) && !isKept(outcome));
}

function add(counts: Map<string, number>, namespace: string): void {
  counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
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
  return read
    .filter((one) => one !== undefined)
    .filter(({ namespace, owner }) => !kept.has(ownerKey(namespace, owner)));
}

/**
 * Reads the pod; undefined: it has its sidecars now, or no controller would recreate it. A pod that was down used no
 * budget; if it is ready now, it would.
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

/** Writes the ledger; false: another pass wrote it. The next pass, or that one, fences the rest. */
async function swap(context: Context, snapshot: Snapshot, evictions: Evictions, next: Ledger): Promise<boolean> {
  const place = { namespace: context.kruiseNamespace, owner: snapshot.sidecarSet };
  const stored = await swapLedger(context.cluster, place, snapshot.stored, next);
  if (stored) snapshot.stored = stored;
  else evictions.isOver = evictions.isOutdated = true;
  return stored !== undefined;
}

/** True when another writer was faster, or the pod is gone. */
async function hasChanged(context: Context, snapshot: Snapshot, reservation: Reservation): Promise<boolean> {
  const pod = await readPod(context, snapshot, reservation);
  return pod?.metadata?.resourceVersion !== reservation.resourceVersion;
}

/**
 * True if an eviction may still take the pod down. After an unclear failure a fence prevents the eviction, so that the
 * next pod can take the place.
 */
async function mayStillLand(
  context: Context,
  snapshot: Snapshot,
  reservation: Reservation,
  outcome: Outcome,
): Promise<boolean> {
  if (outcome.kind === "refused") return false;
  const pod = await readPod(context, snapshot, reservation);
  if (pod?.metadata?.resourceVersion !== reservation.resourceVersion) return false;
  if (outcome.kind !== "unknown") return true;
  const fence = await fencePod(context.cluster, reservation, outcome.error.code === 0);
  if (fence.kind !== "done") return true;
  context.tally.fenced++;
  await readPod(context, snapshot, reservation);
  return false;
}
