/** Evicted pods whose successors the ledger awaits, with their time limits. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Departure } from "../../core/actions.ts";
import type { Ledger, LedgerPlan, Reservation } from "../../core/ledger.ts";
import { anyOwnerKey, ownerKey } from "../../core/pod/replaced.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { type Awaited, awaitedOf, remembered } from "../../core/rollout/rules/replacement/missing-pods.ts";
import { awaitedUntil, evictionsOf } from "../../core/rollout/rules/replacement/plan-replacement.ts";
import type { Cluster } from "../../kube/port.ts";
import { secondText } from "../../time-text.ts";
import type { Clock } from "../loop/clock.ts";
import type { PodView } from "../pod-store/pod-view.ts";

/** Two clocks for times that one machine writes and another reads: both ask the same API server. */
export interface ServerClock {
  readonly cluster: Pick<Cluster, "serverTimeMs">;
  readonly clock: Clock;
}

interface Seen {
  readonly stored: { readonly ledger: Ledger };
  readonly sidecarSet: SidecarSet;
  readonly observed: { readonly view: Pick<PodView, "records" | "get"> };
}

/** Departed pods without a successor. `kept`: valid reservations. */
export function departedOf(context: ServerClock, seen: Seen, kept: readonly Reservation[]): Awaited {
  const { sidecarSet, observed } = seen;
  const departed = awaitedNow(context, seen, kept);
  const facts = { reserved: uidsOf(kept), now: serverTimestamp(context) };
  return awaitedOf(departed, { sidecarSet, pods: observed.view.records, ...facts });
}

/**
 * Departures that still wait for a successor, and those of the last hour without one in time. An eviction may happen
 * while its pod is reserved, so the time starts when the reservation is freed.
 */
export function awaitedNow(
  context: ServerClock,
  { stored, observed }: Pick<Seen, "stored" | "observed">,
  kept: readonly Reservation[],
): readonly Departure[] {
  const { departed = [], reservations } = stored.ledger;
  if (departed.length === 0) return [];
  const [now, reserved, before] = [serverTimestamp(context), uidsOf(kept), uidsOf(reservations)];
  const renewed = departed.map((one) => {
    if (!before.has(one.uid) || reserved.has(one.uid)) return one;
    const until = awaitedUntil(observed.view.get(one.uid), now);
    return until > one.until ? { ...one, until } : one;
  });
  return remembered(renewed, reserved, now);
}

/** Adds evicted pods from the moment of their reservation. */
export function withDepartures(
  plan: LedgerPlan,
  { actions }: Decision,
  { open, overdue }: Pick<Awaited, "open" | "overdue">,
): LedgerPlan {
  const departed = [...open, ...overdue];
  const granted = evictionsOf(actions).filter(({ pod }) => plan.granted.has(pod.uid));
  if (granted.length + departed.length === 0) return plan;
  const added = granted.map(({ departure }) => departure);
  const isAgain = new Set(granted.map(({ pod }) => pod.uid));
  const others = departed.filter(({ uid }) => !isAgain.has(uid));
  return { ...plan, ledger: { ...plan.ledger, departed: [...others, ...added] } };
}

/** The time in RFC3339, by the API server's clock if it is known. */
export function serverTimestamp({ cluster, clock }: ServerClock): string {
  return secondText(cluster.serverTimeMs?.() ?? clock.epochMs());
}

function uidsOf(kept: readonly Reservation[]): ReadonlySet<string> {
  return new Set(kept.map(({ uid }) => uid));
}

// Controllers with a refused eviction. The cause usually affects their other pods too, for a while.

/** Milliseconds until the next eviction; the time doubles with each refusal. */
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 30_000;

/** A refused eviction. */
interface Wanted {
  readonly departure: Pick<Departure, "namespace" | "owner">;
}

/** a key: the same object for a whole rollout */
interface Rollout {
  readonly clock: Clock;
}

interface Kept {
  readonly notBeforeMs: number;
  readonly waitMs: number;
}

/** time limits by owner, for each rollout over its batches */
const kept = new WeakMap<Rollout, Map<string, Kept>>();
/** rollouts with an answered eviction in this pass */
const answered = new WeakSet<Rollout>();

export function hasAskedForEvictions(context: Rollout): boolean {
  return answered.has(context);
}

/** Limit of refused owners in a namespace. Then its other owners wait, because a pass may not be able to try all. */
const MOST_OF_NAMESPACE = 5;

/**
 * Keys of owners with pods that wait to be evicted, and of namespaces whose owners all do. With `record` nothing is
 * evicted, so owners whose wait has ended are included.
 */
export function keptOwners(context: Rollout, mode: "act" | "record" = "act"): ReadonlySet<string> {
  if (mode === "record") return new Set(kept.get(context)?.keys());
  const now = context.clock.now();
  const all = [...(kept.get(context) ?? [])];
  const owners = all.filter(([, { notBeforeMs }]) => now < notBeforeMs).map(([owner]) => owner);
  const byNamespace = Map.groupBy(owners, (owner) => anyOwnerKey(owner.slice(0, owner.indexOf("/"))));
  const full = [...byNamespace].filter(([, own]) => own.length >= MOST_OF_NAMESPACE);
  return new Set([...owners, ...full.map(([namespace]) => namespace)]);
}

export function noteKept(context: Rollout, { departure }: Wanted): void {
  answered.add(context);
  const owner = ownerKey(departure.namespace, departure.owner);
  const ofRollout = kept.get(context) ?? new Map<string, Kept>();
  kept.set(context, ofRollout);
  const last = ofRollout.get(owner);
  const now = context.clock.now();
  // If a whole batch was refused, only its first refusal counts.
  if (last && now < last.notBeforeMs) return;
  const waitMs = last ? Math.min(2 * last.waitMs, LONGEST_WAIT_MS) : FIRST_WAIT_MS;
  ofRollout.set(owner, { notBeforeMs: now + waitMs, waitMs });
}

/** Forgets earlier refusals of an owner after one eviction succeeded. */
export function forgetKept(context: Rollout, { departure }: Wanted): void {
  answered.add(context);
  const owner = ownerKey(departure.namespace, departure.owner);
  const ofRollout = kept.get(context);
  const last = ofRollout?.get(owner);
  if (last && context.clock.now() >= last.notBeforeMs) ofRollout?.delete(owner);
}
