/** Decides which evicted pods have no successor yet: each counts as unavailable until its controller has as many pods as before. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import type { Departure } from "../../ledger.ts";
import { isActive, isMatched } from "../../pod/is-matched.ts";
import { isRunningAndReady } from "../../pod/is-ready.ts";
import { controllerOf } from "../../pod/replaced.ts";

/** uid of a controller → how many of its pods are missing */
export type Missing = ReadonlyMap<string, number>;

export interface Awaited {
  /** those that are still to be kept in the ledger */
  readonly open: readonly Departure[];
  readonly missing: Missing;
  /** those of them that are not there any more */
  readonly gone: readonly Departure[];
}

/** What a departure is judged by. */
export interface DepartureFacts {
  readonly sidecarSet: SidecarSet;
  /** all pods that the SidecarSet selects */
  readonly pods: Sequence<Pod>;
  /** uids */
  readonly reserved: ReadonlySet<string>;
  /** RFC3339 */
  readonly now: string;
}

const NOBODY_AWAITED: Awaited = { open: [], missing: new Map(), gone: [] };

/**
 * Of a pod that is still there the reservation says what may become of it: it is missing once it is going, or gone. What
 * came in its place counts when it is matched, and so takes budget while it is down, or is ready.
 */
export function awaitedOf(departed: readonly Departure[], facts: DepartureFacts): Awaited {
  if (departed.length === 0) return NOBODY_AWAITED;
  const { present, counts } = presentPods(facts);
  const isThere = ({ uid }: Departure) => present.has(uid);
  const held = departed.filter((one) => isThere(one) && facts.reserved.has(one.uid));
  const gone = departed.filter((one) => !isThere(one) && one.until > facts.now);
  const open = new Set(held);
  const missing = new Map<string, number>();
  for (const [owner, own] of Map.groupBy(gone, (one) => one.owner)) {
    const wanted = Math.max(...own.map((one) => one.of));
    const lacking = Math.min(own.length, Math.max(0, wanted - (counts.get(owner) ?? 0)));
    if (lacking > 0) missing.set(owner, lacking);
    // The first that went are the first to be succeeded.
    for (const one of own.slice(own.length - lacking)) open.add(one);
  }
  return {
    open: departed.filter((one) => open.has(one)),
    missing,
    gone: gone.filter((one) => open.has(one)),
  };
}

export function sumOf(missing: Missing): number {
  return [...missing.values()].reduce((sum, count) => sum + count, 0);
}

/** uids of pods that are neither finished nor going, and how many of them count, by controller. */
function presentPods({ sidecarSet, pods }: DepartureFacts) {
  const present = new Set<string>();
  const counts = new Map<string, number>();
  each(pods, (pod) => {
    if (!isActive(pod)) return;
    present.add(pod.metadata?.uid ?? "");
    const owner = controllerOf(pod)?.uid;
    if (owner === undefined || !(isMatched(pod, sidecarSet) || isRunningAndReady(pod))) return;
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  });
  return { present, counts };
}

/** How many pods of each controller count now. */
export function countsOfOwners(facts: Pick<DepartureFacts, "sidecarSet" | "pods">): ReadonlyMap<string, number> {
  return presentPods({ ...facts, reserved: new Set(), now: "" }).counts;
}
