/** Decides which evicted pods have no successor yet: each counts as unavailable until its controller has as many pods as before. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import type { Departure } from "../../actions.ts";
import { isActive, isMatched } from "../../pod/is-matched.ts";
import { isRunningAndReady } from "../../pod/is-ready.ts";
import { isIgnored } from "../../pod/never-ready.ts";
import { controllerOf } from "../../pod/replaced.ts";

/** uid of a controller → how many of its pods are missing */
export type Missing = ReadonlyMap<string, number>;

export interface Awaited {
  /** to be kept in the ledger */
  readonly open: readonly Departure[];
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

const NONE_AWAITED: Awaited = { open: [], missing: new Map(), gone: [] };

/**
 * Of a pod that is still there the reservation says what may become of it: it is missing once it is going, or gone. What
 * came in its place counts when it is matched, and so takes budget while it is down, or is ready.
 */
export function awaitedOf(departed: readonly Departure[], facts: DepartureFacts): Awaited {
  if (departed.length === 0) return NONE_AWAITED;
  const { present, counts, places } = presentPods(facts);
  const isThere = ({ uid }: Departure) => present.has(uid);
  const held = departed.filter((one) => isThere(one) && facts.reserved.has(one.uid));
  const gone = departed.filter((one) => !isThere(one));
  const open = new Set(held);
  const missing = new Map<string, number>();
  for (const [owner, own] of Map.groupBy(gone, (one) => one.owner)) {
    const lacking = lackingOf(own, places, counts.get(owner) ?? 0);
    if (lacking.length > 0) missing.set(owner, lacking.length);
    for (const one of lacking) open.add(one);
  }
  return {
    open: departed.filter((one) => open.has(one)),
    missing,
    gone: gone.filter((one) => open.has(one)),
  };
}

/** Of one controller. `count`: how many of its pods count now. */
function lackingOf(gone: readonly Departure[], places: ReadonlySet<string>, count: number): readonly Departure[] {
  const [named, counted] = [gone.filter(isNamed), gone.filter((one) => !isNamed(one))];
  const wanted = Math.max(0, ...counted.map((one) => one.of));
  // The first that went are the first to be succeeded.
  const succeeded = Math.max(0, counted.length - Math.max(0, wanted - count));
  return [...named.filter((one) => !places.has(placeOf(one))), ...counted.slice(succeeded)];
}

function isNamed({ of }: Departure): boolean {
  return of === 0;
}

export function sumOf(missing: Missing): number {
  return [...missing.values()].reduce((sum, count) => sum + count, 0);
}

/** uids of pods that are neither finished nor going; how many of them count, by controller, and in which places those are. */
function presentPods({ sidecarSet, pods }: DepartureFacts) {
  const present = new Set<string>();
  const counts = new Map<string, number>();
  const places = new Set<string>();
  each(pods, (pod) => {
    if (!isActive(pod)) return;
    present.add(pod.metadata?.uid ?? "");
    const owner = controllerOf(pod)?.uid;
    if (owner === undefined || !isBack(pod, sidecarSet)) return;
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
    places.add(placeOf(pod.metadata ?? {}));
  });
  return { present, counts, places };
}

function placeOf({ namespace, name }: { readonly namespace?: string; readonly name?: string }): string {
  return `${namespace}/${name}`;
}

/** Ready, or taking budget by itself until it is: one that is ignored until it was ready does not. */
function isBack(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isRunningAndReady(pod) || (isMatched(pod, sidecarSet) && !isIgnored(pod, sidecarSet));
}

/** How many pods of each controller count now. */
export function countsOfOwners(facts: Pick<DepartureFacts, "sidecarSet" | "pods">): ReadonlyMap<string, number> {
  return presentPods({ ...facts, reserved: new Set() }).counts;
}
