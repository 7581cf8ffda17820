/** Controllers of which an eviction was refused: what keeps one of their pods keeps the others, for a while. */
import type { Departure } from "../../core/actions.ts";
import { ownerKey } from "../../core/pod/replaced.ts";
import type { Clock } from "../loop/clock.ts";

/** Until the next is asked for, twice as long each time. */
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 30_000;

/** What was refused. */
interface Wanted {
  readonly departure: Pick<Departure, "namespace" | "owner">;
}

/** of one rollout, the same object all along */
interface Rollout {
  readonly clock: Clock;
}

interface Kept {
  readonly notBeforeMs: number;
  readonly waitMs: number;
}

/** of each rollout, over its batches: ownerKey → until when */
const kept = new WeakMap<Rollout, Map<string, Kept>>();
/** rollouts of which an eviction was answered in this pass */
const answered = new WeakSet<Rollout>();

export function hasAskedForEvictions(context: Rollout): boolean {
  return answered.has(context);
}

/** Returns the keys of owners whose pods wait to be evicted. With `record` nothing is evicted, so owners whose wait is over are in it too. */
export function keptOwners(context: Rollout, mode: "act" | "record" = "act"): ReadonlySet<string> {
  if (mode === "record") return new Set(kept.get(context)?.keys());
  const now = context.clock.now();
  const all = [...(kept.get(context) ?? [])];
  return new Set(all.filter(([, { notBeforeMs }]) => now < notBeforeMs).map(([owner]) => owner));
}

export function noteKept(context: Rollout, { departure }: Wanted): void {
  answered.add(context);
  const owner = ownerKey(departure.namespace, departure.owner);
  const ofRollout = kept.get(context) ?? new Map<string, Kept>();
  kept.set(context, ofRollout);
  const last = ofRollout.get(owner);
  const now = context.clock.now();
  // Of a batch that was refused as a whole the first counts.
  if (last && now < last.notBeforeMs) return;
  const waitMs = last ? Math.min(2 * last.waitMs, LONGEST_WAIT_MS) : FIRST_WAIT_MS;
  ofRollout.set(owner, { notBeforeMs: now + waitMs, waitMs });
}

/** One was evicted, so others may be. */
export function forgetKept(context: Rollout, { departure }: Wanted): void {
  answered.add(context);
  const owner = ownerKey(departure.namespace, departure.owner);
  const ofRollout = kept.get(context);
  const last = ofRollout?.get(owner);
  if (last && context.clock.now() >= last.notBeforeMs) ofRollout?.delete(owner);
}
