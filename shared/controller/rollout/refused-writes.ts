/** Remembers whether the API server refuses what a pass writes to pods, and whether it refused the pass before. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { type Batched, lastRefusedWrites, withRefused } from "../../core/rollout/approval.ts";

/** The context of one rollout in one pass. */
type Rollout = object;

type Refusable = Batched & { readonly halt?: string | undefined };

/** The results of a pass's writes to pods. */
interface Writes {
  /** what the status said of refused writes when the pass began */
  readonly before: { readonly text: string; readonly isLasting: boolean } | undefined;
  /** the last refusal since a write was accepted */
  refused?: string | undefined;
  hasAccepted: boolean;
}

const writesOf = new WeakMap<Rollout, Writes>();

/** Keeps what the status said of refused writes before this pass wrote anything. */
function writesIn(context: Rollout, sidecarSet: SidecarSet): Writes {
  const known = writesOf.get(context);
  if (known) return known;
  const stored = lastRefusedWrites(sidecarSet);
  const before = stored && { text: stored.message, isLasting: stored.status === "True" };
  const writes: Writes = { before, hasAccepted: false };
  writesOf.set(context, writes);
  return writes;
}

export function noteAccepted(context: Rollout): void {
  const writes = writesOf.get(context);
  if (writes) Object.assign(writes, { hasAccepted: true, refused: undefined });
}

/** The decision with what this pass, or the one before, was told about its writes. */
export function sayRefused<T extends Refusable>(context: Rollout, sidecarSet: SidecarSet, decision: T): T {
  const { before, refused, hasAccepted } = writesIn(context, sidecarSet);
  if (decision.halt !== undefined || decision.summary.updated >= decision.summary.matched) return decision;
  if (refused !== undefined) return withRefused(decision, refused, before !== undefined && !hasAccepted);
  if (before === undefined || hasAccepted || decision.summary.selected === 0) return decision;
  return withRefused(decision, before.text, before.isLasting);
}

/** `text`: the object, and the words of the API server. */
export function noteRefusal(context: Rollout, text: string): void {
  const writes = writesOf.get(context);
  if (writes) writes.refused = text;
}

/** True while no write was accepted since the last refusal. */
export function isRefused(context: Rollout): boolean {
  return writesOf.get(context)?.refused !== undefined;
}
