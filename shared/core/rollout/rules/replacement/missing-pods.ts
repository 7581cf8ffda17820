/** Evicted pods without a successor. Each is unavailable until its controller has enough pods. */
import type { Pod } from "../../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { addSeconds } from "../../../../go/seconds-between.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import { BY_NAME, type Departure, NONE_AWAITED } from "../../../actions.ts";
import { isActive, isMatched } from "../../../pod/is-matched.ts";
import { isIgnored, isRunningAndReady } from "../../../pod/is-ready.ts";
import { controllerKey, ownerKey } from "../../../pod/replaced.ts";

/** Seconds after the deadline for which a departure without a successor puts its namespace's pods behind all others. */
const REMEMBERED_SECONDS = 3_600;
/** Seconds by which the clocks of API servers may differ: a pod that seems a little older may be newer. */
const CLOCKS_SECONDS = 5;

/** Numbers of missing pods by the key of their controller. */
export type Missing = ReadonlyMap<string, number>;

/** Times by the key of a controller, RFC3339. Pods that are older count even if they are not ready. */
type SinceOf = ReadonlyMap<string, string>;

export interface Awaited {
  /** departures that the ledger keeps */
  readonly open: readonly Departure[];
  /** controllers with open departures */
  readonly since: SinceOf;
  readonly missing: Missing;
  /** open departures whose pods no longer exist */
  readonly gone: readonly Departure[];
  /** one departure of each namespace whose pods did not return lately; the ledger keeps it */
  readonly overdue: readonly Departure[];
}

/** The facts that decide about departures. */
export interface DepartureFacts {
  readonly sidecarSet: SidecarSet;
  /** all pods that the SidecarSet selects */
  readonly pods: Sequence<Pod>;
  /** uids of reserved pods */
  readonly reserved: ReadonlySet<string>;
  /** the present time, RFC3339, by the API server's clock */
  readonly now: string;
}

/**
 * Departures that have not expired at `now`, RFC3339, by the API server's clock. A pod that still exists is held by its
 * reservation.
 */
export function unexpired(
  departed: readonly Departure[],
  kept: ReadonlySet<string>,
  now: string,
): readonly Departure[] {
  return departed.filter(({ uid, until }) => until > now || kept.has(uid));
}

/** Returns these departures, and the ones of the last hour that had no successor in time. */
export function remembered(departed: readonly Departure[], kept: ReadonlySet<string>, now: string) {
  return unexpired(departed, kept, addSeconds(now, -REMEMBERED_SECONDS) ?? now);
}

const NOTHING_AWAITED = { open: [], since: new Map(), missing: new Map(), gone: [] };

/** Separates departures that are still awaited from those without a successor in time. */
export function awaitedOf(departed: readonly Departure[], facts: DepartureFacts): Awaited {
  const { reserved, now } = facts;
  const open = unexpired(departed, reserved, now);
  const isOpen = new Set(open);
  const vain = remembered(departed, reserved, now).filter((one) => !isOpen.has(one));
  const overdue = new Map(openOf(vain, facts).gone.map((one) => [one.namespace, one]));
  return { ...openOf(open, facts), overdue: [...overdue.values()] };
}

/**
 * The open departures. A pod that still exists is missing only once it terminates. Its successor counts when it is
 * matched, and so uses budget itself while it is down. An older pod of the controller counts as before: an unready pod
 * that recovers is no successor.
 */
function openOf(departed: readonly Departure[], facts: DepartureFacts): Omit<Awaited, "overdue"> {
  if (departed.length === 0) return NOTHING_AWAITED;
  const since = sinceOf(departed);
  const { present, counts, places } = presentPods(facts, (owner) => since.get(owner) ?? "");
  const isThere = ({ uid }: Departure) => present.has(uid);
  const held = departed.filter((one) => isThere(one) && facts.reserved.has(one.uid));
  const gone = departed.filter((one) => !isThere(one));
  const open = new Set(held);
  const missing = new Map<string, number>();
  for (const [owner, own] of Map.groupBy(gone, keyOf)) {
    const lacking = lackingOf(own, places, counts.get(owner) ?? 0);
    if (lacking.length === 0) continue;
    missing.set(owner, lacking.length);
    for (const one of [...lacking, ...own.filter(isLetGo)]) open.add(one);
  }
  const stillOpen = departed.filter((one) => open.has(one));
  return {
    open: stillOpen,
    since: sinceOf(stillOpen),
    missing,
    gone: gone.filter((one) => open.has(one) && !isLetGo(one)),
  };
}

function keyOf({ namespace, owner }: Departure): string {
  return ownerKey(namespace, owner);
}

/** The time of each controller's first reservation, so that all its departures count the same pods. */
function sinceOf(departed: readonly Departure[]): SinceOf {
  const since = new Map<string, string>();
  for (const one of departed.filter(isCounted)) {
    const first = since.get(keyOf(one));
    if (first === undefined || one.since < first) since.set(keyOf(one), one.since);
  }
  return since;
}

/** Departures of one controller without a successor. `count`: number of its pods that count now. */
function lackingOf(gone: readonly Departure[], places: ReadonlySet<string>, count: number): readonly Departure[] {
  const counted = gone.filter(isCounted);
  const wanted = Math.max(0, ...counted.map((one) => one.of)) - gone.filter(isLetGo).length;
  // Successors are assigned to the oldest departures first.
  const succeeded = Math.max(0, counted.length - Math.max(0, wanted - count));
  return [...gone.filter((one) => isNamed(one) && !places.has(placeOf(one))), ...counted.slice(succeeded)];
}

function isNamed({ of }: Departure): boolean {
  return of === BY_NAME;
}

function isLetGo({ of }: Departure): boolean {
  return of === NONE_AWAITED;
}

function isCounted(one: Departure): boolean {
  return !(isNamed(one) || isLetGo(one));
}

export function sumOf(missing: Missing = new Map()): number {
  return [...missing.values()].reduce((sum, count) => sum + count, 0);
}

/**
 * Pods that are neither finished nor terminating: their uids, their number by controller, and the names that have
 * returned. `sinceOf` a controller: undefined when all of its pods count.
 */
function presentPods(
  { sidecarSet, pods }: Pick<DepartureFacts, "sidecarSet" | "pods">,
  sinceOf: (owner: string) => string | undefined,
) {
  const present = new Set<string>();
  const counts = new Map<string, number>();
  const places = new Set<string>();
  const take = (pod: Pod, owner: string) => {
    const isThere = isBack(pod, sidecarSet);
    if (isThere) places.add(placeOf(pod.metadata ?? {}));
    if (isThere || isOlder(pod, sinceOf(owner))) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  };
  each(pods, (pod) => {
    if (!isActive(pod)) return;
    present.add(pod.metadata?.uid ?? "");
    const owner = controllerKey(pod);
    if (owner !== "") take(pod, owner);
  });
  return { present, counts, places };
}

/** True for a pod that is older than its controller's departures. */
function isOlder({ metadata }: Pod, since: string | undefined): boolean {
  return since === undefined || (metadata?.creationTimestamp ?? since) < (addSeconds(since, -CLOCKS_SECONDS) ?? "");
}

function placeOf({ namespace, name }: { readonly namespace?: string; readonly name?: string }): string {
  return `${namespace}/${name}`;
}

/** True for a pod that is ready, or uses budget until it is. A pod ignored until its first readiness is not. */
function isBack(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isRunningAndReady(pod) || (isMatched(pod, sidecarSet) && !isIgnored(pod, sidecarSet));
}

/** The ledger's facts about a pod that is about to go. */
export type Place = Pick<Departure, "of" | "since">;

/** Reads the departure of a pod that goes. The second argument: departures that are already awaited. */
export function placeReader(
  facts: Pick<DepartureFacts, "sidecarSet" | "pods">,
  { missing, since }: Pick<Awaited, "missing" | "since">,
): (pod: Pod, now: string) => Place {
  let counts: ReadonlyMap<string, number> | undefined;
  return (pod, now) => {
    const owner = controllerKey(pod);
    counts ??= presentPods(facts, (one) => since.get(one)).counts;
    const first = since.get(owner);
    const isLet = !isBack(pod, facts.sidecarSet) && isOlder(pod, first);
    const of = isLet ? NONE_AWAITED : (counts.get(owner) ?? 0) + (missing.get(owner) ?? 0);
    return { of, since: first ?? now };
  };
}
