/** Records refused writes to pods, in this pass and the last one, and namespaces with slow writes. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isOfWrites, lastTrouble, type PassTrouble, withTrouble } from "../../core/rollout/pass-trouble.ts";
import type { Batched } from "../../core/rollout/rules/gate/approval.ts";
import type { Reserved } from "../../core/rollout/select/reserved.ts";
import type { Clock } from "../loop/clock.ts";

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
  /** the last refusal, unless a write was accepted since */
  refused?: string | undefined;
  /** true: the refusal says that no image of a running pod may change */
  isOfImages: boolean;
  /** number of refusals in a row */
  inARow: number;
  /** true: since then the API server was too busy for a whole batch */
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

/** The words of the refusal. If it was about images, the pass's other action follows. */
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

/** Records a refusal. `text`: the object, and the words of the API server. */
export function noteRefusal(context: Rollout, text: string, isOfImages = false): void {
  const writes = writesOf.get(context);
  if (writes) Object.assign(writes, { refused: text, isOfImages, inARow: writes.inARow + 1 });
}

/** Records that the API server answered 429 to every patch of a batch, which concerns all pods. */
export function noteBusy(context: Rollout, text: string): void {
  noteRefusal(context, text);
  const writes = writesOf.get(context);
  if (writes) writes.isBusy = true;
}

/** True if the API server has accepted a write of this pass. */
export function hasAcceptedWrites(context: Rollout): boolean {
  return writesOf.get(context)?.hasAccepted === true;
}

/** The number of refusals since a write was accepted, or since the pass began. */
export function refusedInARow(context: Rollout): number {
  return writesOf.get(context)?.inARow ?? 0;
}

/** True while no write was accepted since the last refusal. */
export function isRefused(context: Rollout): boolean {
  return writesOf.get(context)?.refused !== undefined;
}

// Namespaces with slow writes to pods or budgets, for example by a slow webhook. Other namespaces go first.

/** Milliseconds of a write that make its namespace slow. */
export const SLOW_MS = 5_000;
/** Limit of parallel writes to one namespace while other namespaces have writes to begin. */
const MOST_AT_ONCE = 16;

const slowOf = new WeakMap<object, Set<string>>();

function slowNamespaces(rollout: object): Set<string> {
  const found = slowOf.get(rollout) ?? new Set();
  slowOf.set(rollout, found);
  return found;
}

/** The reserved pods without slow namespaces; undefined: no namespace is slow. */
export function withoutSlow(rollout: object, reserved: Reserved): Reserved | undefined {
  const slow = slowNamespaces(rollout);
  if (slow.size === 0) return undefined;
  const { refused } = reserved;
  return { ...reserved, refused: { ...refused, passedOver: { ...refused.passedOver, slow } } };
}

interface InNamespace {
  readonly namespace: string;
}

/** The turns of namespaces in one batch. */
export class NamespaceTurns {
  readonly #rollout: { readonly clock: Clock };
  /** A batch with pods of namespaces that were slow before has no other pods. */
  readonly #slowBefore: ReadonlySet<string>;
  readonly #underWay = new Map<string, number>();

  constructor(rollout: { readonly clock: Clock }) {
    this.#rollout = rollout;
    this.#slowBefore = new Set(slowNamespaces(rollout));
  }

  /** The checks that `mapWithin` needs. */
  checks<T>(placeOf: (item: T) => InNamespace) {
    return {
      mayBegin: (item: T) => this.#mayBegin(placeOf(item)),
      begin: (item: T) => this.begin(placeOf(item)),
    };
  }

  #mayBegin({ namespace }: InNamespace): boolean {
    return (this.#underWay.get(namespace) ?? 0) < MOST_AT_ONCE;
  }

  /** True if the namespace became slow in this batch. Its rest is left; the next decision prefers others. */
  isLeft({ namespace }: InNamespace): boolean {
    return slowNamespaces(this.#rollout).has(namespace) && !this.#slowBefore.has(namespace);
  }

  /** Begins a write. Call the returned function at its end. */
  begin({ namespace }: InNamespace): () => void {
    const { clock } = this.#rollout;
    const beganAtMs = clock.now();
    const count = (change: number) => this.#underWay.set(namespace, (this.#underWay.get(namespace) ?? 0) + change);
    count(1);
    return () => {
      count(-1);
      if (clock.now() - beganAtMs > SLOW_MS) slowNamespaces(this.#rollout).add(namespace);
    };
  }
}
