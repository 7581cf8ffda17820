/** Writes the decided status if its basis is unchanged, and not too often. */
import { isDeepStrictEqual } from "node:util";
import { WAVES_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../api/sidecarset.ts";
import { isGenerationObservable, ledgerSubject } from "../../core/ledger.ts";
import { isSteeredAlike, steered } from "../../core/pod/steering/steered.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { narrow } from "../../core/rollout/narrow.ts";
import { about } from "../../kube/error.ts";
import { act, type NotDone, STATUS_FIELDS } from "./act.ts";
import { askGate } from "./decide-round.ts";
import { beginNotify } from "./notify.ts";
import { type Context, decideOn, keptOf, readSame, type Snapshot } from "./observe.ts";
import { statusAdditions, statusPatch, transitions } from "./status-additions.ts";

/** Limit of tries. Endless writes to a SidecarSet's metadata prevent its status in this pass. */
const STATUS_ATTEMPTS = 5;
/** Shortest time in milliseconds between two writes of a SidecarSet's status. */
const STATUS_EVERY_MS = 1_000;
export const NOT_WRITTEN = "the status is not written";
const statusWrittenAtMs = new WeakMap<Context, number>();

/**
 * Writes the ledger's place into the first status, so that passes with other ledgers see each other before a
 * reservation. False: the SidecarSet has changed since it was read.
 */
export async function announceLedger(context: Context, snapshot: Snapshot, decision: Decision): Promise<boolean> {
  const { status } = snapshot.sidecarSet;
  // The CRD removes the field, so the place cannot be announced.
  if (status && status.ledgerNamespace !== "") return true;
  const outcome = await writeStatus(context, snapshot, decision, { isObservable: false, mayWait: false });
  // This write does not count as recent, so that the decision is still written before pods are.
  statusWrittenAtMs.delete(context);
  return outcome !== "lost";
}

/** Writes the status. lost: the SidecarSet has changed. owed: the last write was just now, and `mayWait`. */
export async function writeStatus(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
  { isObservable, mayWait }: { readonly isObservable: boolean; readonly mayWait: boolean },
): Promise<"done" | "owed" | "lost"> {
  const { sidecarSet } = snapshot;
  const counts = countsToWrite(sidecarSet, decision, isObservable);
  const additions = statusAdditions(context, snapshot, decision);
  const status = counts && withoutWaves({ ...counts, ...additions }, additions);
  if (status === undefined || isSameStatus(sidecarSet.status, status)) return "done";
  if (mayWait && isTooEarly(context)) return "owed";
  const written = await patchStatus(context, snapshot, status);
  if (!written) return "lost";
  refusePruned(status, written);
  statusWrittenAtMs.set(context, context.clock.now());
  snapshot.sidecarSet = steered(written);
  beginNotify(context, sidecarSet, snapshot.sidecarSet);
  for (const event of transitions(sidecarSet, snapshot.sidecarSet)) await act(event, { ...context, sidecarSet });
  return "done";
}

/** Removes the stored waves together with their annotation. */
function withoutWaves(
  { waves: _, ...status }: SidecarSetStatus,
  { waves }: Partial<SidecarSetStatus>,
): SidecarSetStatus {
  return waves ? { ...status, waves } : status;
}

/** Fails if the CRD drops the waves. It would be unknown which waves have passed, so not even the first one starts. */
function refusePruned(status: SidecarSetStatus, written: SidecarSet): void {
  if (status.waves === undefined || written.status?.waves !== undefined) return;
  throw new Error(
    `the annotation ${WAVES_ANNOTATION} asks for waves, and the definition of SidecarSets does not keep status.waves: install the one of this version (sidecarset install)`,
  );
}

/** Patches the status; undefined: its basis has changed, or the write may have happened. */
async function patchStatus(
  context: Context,
  snapshot: Snapshot,
  status: SidecarSetStatus,
): Promise<SidecarSet | undefined> {
  for (let attempt = 1; attempt <= STATUS_ATTEMPTS; attempt++) {
    const { sidecarSet } = snapshot;
    const outcome = await act(statusPatch(context, sidecarSet, status), { ...context, sidecarSet });
    if (outcome.kind === "done") return outcome.object as SidecarSet;
    if (outcome.kind === "refused") throw about(NOT_WRITTEN, outcome.error);
    if (!(await isOtherwiseSame(context, snapshot, outcome))) return undefined;
  }
  return undefined;
}

/**
 * True if nothing changed that the decision depends on, so that the pass may write again. @throws KubeError if nobody
 * wrote: it was a refusal, not a race.
 */
async function isOtherwiseSame(context: Context, snapshot: Snapshot, { kind, error }: NotDone): Promise<boolean> {
  const before = snapshot.sidecarSet;
  const now = await readSame(context, snapshot);
  if (!now || !isSteeredAlike(now, before) || !isSameStatus(before.status, now.status ?? {})) return false;
  const isUntouched = now.metadata?.resourceVersion === before.metadata?.resourceVersion;
  if (isUntouched && kind === "conflict") throw about(NOT_WRITTEN, error);
  snapshot.sidecarSet = now;
  return true;
}

/** The counts; undefined: the SidecarSet has no status, and gets none. */
function countsToWrite({ status }: SidecarSet, { actions }: Decision, isObservable: boolean) {
  const action = actions.find(({ kind }) => kind === "PatchStatus");
  if (action?.kind !== "PatchStatus") return status;
  return isObservable ? action.status : withGenerationOf(status, action.status);
}

function withGenerationOf(stored: SidecarSetStatus | undefined, status: SidecarSetStatus): SidecarSetStatus {
  const { observedGeneration: _, ...counts } = status;
  const observedGeneration = stored?.observedGeneration;
  return observedGeneration === undefined ? counts : { ...counts, observedGeneration };
}

function isSameStatus(stored: SidecarSetStatus = {}, next: SidecarSetStatus): boolean {
  return STATUS_FIELDS.every((key) => isDeepStrictEqual(stored[key], next[key]));
}

function isTooEarly(context: Context): boolean {
  return context.clock.now() - (statusWrittenAtMs.get(context) ?? Number.NEGATIVE_INFINITY) < STATUS_EVERY_MS;
}

const REFRESH_MS = 1_000;
/** Largest share of the time for counting. With very many pods it is done less often. */
const SHARE_OF_COUNTING = 1 / 20;

/** Updates the status while a batch is written: a batch may take many seconds, and people watch it. */
export class BatchStatus {
  readonly #context: Context;
  readonly #snapshot: Snapshot;
  #dueAtMs: number;
  #write: Promise<void> | undefined;

  constructor(context: Context, snapshot: Snapshot) {
    this.#context = context;
    this.#snapshot = snapshot;
    this.#dueAtMs = context.clock.now() + REFRESH_MS;
  }

  /** Starts a due write of the status. The batch does not wait for it, and ignores its failure. */
  refresh(): void {
    if (this.#write || this.#context.clock.now() < this.#dueAtMs) return;
    this.#write = this.#refresh()
      .catch(() => undefined)
      .finally(() => {
        const everyMs = Math.max(REFRESH_MS, (this.#snapshot.decisionMs ?? 0) / SHARE_OF_COUNTING);
        this.#dueAtMs = this.#context.clock.now() + everyMs;
        this.#write = undefined;
      });
  }

  /** Resolves when no write is running: the code after the batch writes the same status. */
  async end(): Promise<void> {
    await this.#write;
  }

  async #refresh(): Promise<void> {
    const kept = await keptOf(this.#context, this.#snapshot);
    const wish = decideOn(this.#context, this.#snapshot, kept);
    const reserved = new Set(kept.map(({ uid }) => uid));
    const gate = await askGate(this.#context, this.#snapshot, wish, { reserved, mayAsk: false });
    const { stored, sidecarSet } = this.#snapshot;
    const isObservable = isGenerationObservable(stored.ledger, ledgerSubject(sidecarSet));
    await writeStatus(this.#context, this.#snapshot, narrow(wish, { gate }, reserved), { isObservable, mayWait: true });
  }
}
