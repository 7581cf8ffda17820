/** Remembers whether the API server refuses this pass's writes to pods, and whether it refused the last pass. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isOfWrites, lastTrouble, type PassTrouble, withTrouble } from "../../core/rollout/pass-trouble.ts";
import type { Batched } from "../../core/rollout/rules/gate/approval.ts";

/** The context of one rollout in one pass. */
type Rollout = object;

type Refusable = Batched & {
  readonly halt?: string | undefined;
  readonly summary: { readonly trouble?: PassTrouble };
};

/** The results of a pass's writes to pods. */
interface Writes {
  /** refused writes in the status at the start of the pass */
  readonly before: PassTrouble | undefined;
  /** the last refusal since a write was accepted */
  refused?: string | undefined;
  /** the refusal says that no image of a running pod may change */
  isOfImages: boolean;
  /** refusals since then */
  inARow: number;
  /** true: since then the API server refused a whole batch because of its load */
  isBusy: boolean;
  hasAccepted: boolean;
}

const MANY_IN_A_ROW = 20;
const writesOf = new WeakMap<Rollout, Writes>();

/** Keeps the status's refused writes from before this pass's first write. */
function writesIn(context: Rollout, sidecarSet: SidecarSet): Writes {
  const known = writesOf.get(context);
  if (known) return known;
  const stored = lastTrouble(sidecarSet);
  const before = stored && isOfWrites(stored.hold) ? stored : undefined;
  const writes: Writes = { before, isOfImages: false, inARow: 0, isBusy: false, hasAccepted: false };
  writesOf.set(context, writes);
  return writes;
}

/** Pods that were not tried yet, or are recovering, may continue. */
function areOthersStuck({ hold, selected, updated, updatedReady }: Refusable["summary"], inARow: number): boolean {
  return isOfWrites(hold) || inARow >= MANY_IN_A_ROW || (selected === 0 && updated === updatedReady);
}

export function noteAccepted(context: Rollout): void {
  const writes = writesOf.get(context);
  if (writes) Object.assign(writes, { hasAccepted: true, refused: undefined, inARow: 0, isBusy: false });
}

/** The words of the refusal; if it was about images, followed by what the pass does instead. */
function textOf({ refused = "", isOfImages }: Writes, { instead = "" }: Partial<PassTrouble> = {}): string {
  return isOfImages ? `${refused}${instead}` : refused;
}

/** The decision with the refusals of this pass, or of the last one. */
export function sayRefused<T extends Refusable>(context: Rollout, sidecarSet: SidecarSet, decision: T): T {
  const writes = writesIn(context, sidecarSet);
  const { before, refused, inARow, isBusy, hasAccepted } = writes;
  const { summary } = decision;
  if (decision.halt !== undefined || summary.updated >= summary.matched) return decision;
  const hold = "refused";
  const isLasting = before !== undefined && !hasAccepted && (isBusy || areOthersStuck(summary, inARow));
  if (refused !== undefined) return withTrouble(decision, { hold, text: textOf(writes, summary.trouble), isLasting });
  if (isOfWrites(summary.hold) && isLasting) return withTrouble(decision, { hold, text: before.text, isLasting });
  if (before === undefined || hasAccepted || summary.selected === 0) return decision;
  return withTrouble(decision, { ...before, hold });
}

/** `text`: the object, and the words of the API server. */
export function noteRefusal(context: Rollout, text: string, isOfImages = false): void {
  const writes = writesOf.get(context);
  if (writes) Object.assign(writes, { refused: text, isOfImages, inARow: writes.inARow + 1 });
}

/** The API server answered 429 to every patch of a batch: that is about all pods. */
export function noteBusy(context: Rollout, text: string): void {
  noteRefusal(context, text);
  const writes = writesOf.get(context);
  if (writes) writes.isBusy = true;
}

/** The API server has accepted a write of this pass. */
export function hasAcceptedWrites(context: Rollout): boolean {
  return writesOf.get(context)?.hasAccepted === true;
}

/** Refusals since a write was accepted, or since the pass began. */
export function refusedInARow(context: Rollout): number {
  return writesOf.get(context)?.inARow ?? 0;
}

/** True while no write was accepted since the last refusal. */
export function isRefused(context: Rollout): boolean {
  return writesOf.get(context)?.refused !== undefined;
}
