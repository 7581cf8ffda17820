/** Decides which evicted pods have no successor yet: each counts as unavailable until its controller has as many pods as before. */
import type { Pod } from "../../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { addSeconds } from "../../../../go/seconds-between.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import { BY_NAME, type Departure, NONE_AWAITED } from "../../../actions.ts";
import { isActive, isMatched } from "../../../pod/is-matched.ts";
import { isRunningAndReady } from "../../../pod/is-ready.ts";
import { controllerKey, ownerKey } from "../../../pod/replaced.ts";
import { isIgnored } from "../../../pod/was-ready.ts";

/** Clocks of two API servers differ by less: a pod that was created so shortly before may have come since. */
const CLOCKS_SECONDS = 5;

/** controllerKey → how many of its pods are missing */
export type Missing = ReadonlyMap<string, number>;

/** controllerKey → RFC3339: older pods of its count whether they are ready or not */
type SinceOf = ReadonlyMap<string, string>;

export interface Awaited {
  /** to be kept in the ledger */
  readonly open: readonly Departure[];
  /** of controllers of which some are open */
  readonly since: SinceOf;
  readonly missing: Missing;
  /** of these, pods that are not there any more */
  readonly gone: readonly Departure[];
}

/** What a departure is judged by. */
export interface DepartureFacts {
  readonly sidecarSet: SidecarSet;
  /** all pods that the SidecarSet selects */
  readonly pods: Sequence<Pod>;
  /** uids */
  readonly reserved: ReadonlySet<string>;
}

/** Departures that are still waited for at `now`, RFC3339, by the API server's clock; a pod that is still there is held by its reservation. */
export function unexpired(
  departed: readonly Departure[],
  kept: ReadonlySet<string>,
  now: string,
): readonly Departure[] {
  return departed.filter(({ uid, until }) => until > now || kept.has(uid));
}

const NOTHING_AWAITED: Awaited = { open: [], since: new Map(), missing: new Map(), gone: [] };

/**
 * Of a pod that is still there the reservation says what may become of it: it is missing once it is going, or gone. What
 * came in its place counts when it is matched, and so takes budget while it is down, or is ready. One that was there
 * before counts as it did then: a pod that was down, and works now, is not what came in another's place.
 */
export function awaitedOf(departed: readonly Departure[], facts: DepartureFacts): Awaited {
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

/** When the first of a controller's was reserved: for all of them the same pods count. */
function sinceOf(departed: readonly Departure[]): SinceOf {
  const since = new Map<string, string>();
  for (const one of departed.filter(isCounted)) {
    const first = since.get(keyOf(one));
    if (first === undefined || one.since < first) since.set(keyOf(one), one.since);
  }
  return since;
}

/** Of one controller. `count`: how many of its pods count now. */
function lackingOf(gone: readonly Departure[], places: ReadonlySet<string>, count: number): readonly Departure[] {
  const counted = gone.filter(isCounted);
  const wanted = Math.max(0, ...counted.map((one) => one.of)) - gone.filter(isLetGo).length;
  // The first that went are the first to be succeeded.
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
 * uids of pods that are neither finished nor going; how many of them count, by controller, and in which places are those
 * that are back. `sinceOf` of a controller: undefined where all of its pods count.
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

/** Than what is awaited of its controller's pods. */
function isOlder({ metadata }: Pod, since: string | undefined): boolean {
  return since === undefined || (metadata?.creationTimestamp ?? since) < (addSeconds(since, -CLOCKS_SECONDS) ?? "");
}

function placeOf({ namespace, name }: { readonly namespace?: string; readonly name?: string }): string {
  return `${namespace}/${name}`;
}

/** Ready, or taking budget by itself until it is: one that is ignored until it was ready does not. */
function isBack(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isRunningAndReady(pod) || (isMatched(pod, sidecarSet) && !isIgnored(pod, sidecarSet));
}

/** What a departure says of a pod that is about to go. */
export type Place = Pick<Departure, "of" | "since">;

/** What is awaited once a pod goes. `awaited`: what is already. */
export function placeReader(
  facts: Pick<DepartureFacts, "sidecarSet" | "pods">,
  { missing, since }: Awaited,
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
