/** Keeps the status moving while a batch is written: a batch may take many seconds, and people watch it. */
import { isGenerationObservable, subjectOf } from "../../core/ledger.ts";
import { narrow } from "../../core/rollout/narrow.ts";
import { askGate } from "./ask-before-batch.ts";
import { type Context, decideOn, keptOf, type Snapshot } from "./observe.ts";
import { writeStatus } from "./write-status.ts";

const EVERY_MS = 1_000;
/** Counting takes at most this share of the time: over very many pods it is done less often. */
const SHARE_OF_COUNTING = 1 / 20;

/** Of one batch, from its beginning. */
export class BatchStatus {
  readonly #context: Context;
  readonly #snapshot: Snapshot;
  #dueAtMs: number;
  #write: Promise<void> | undefined;

  constructor(context: Context, snapshot: Snapshot) {
    this.#context = context;
    this.#snapshot = snapshot;
    this.#dueAtMs = context.clock.now() + EVERY_MS;
  }

  /** Begins to write the status when it is time. The batch does not wait for it, and goes on when it fails. */
  refresh(): void {
    if (this.#write || this.#context.clock.now() < this.#dueAtMs) return;
    this.#write = this.#refresh()
      .catch(() => undefined)
      .finally(() => {
        const everyMs = Math.max(EVERY_MS, (this.#snapshot.decisionMs ?? 0) / SHARE_OF_COUNTING);
        this.#dueAtMs = this.#context.clock.now() + everyMs;
        this.#write = undefined;
      });
  }

  /** Resolves when no write is under way: what comes after the batch writes the same status. */
  async end(): Promise<void> {
    await this.#write;
  }

  async #refresh(): Promise<void> {
    const kept = await keptOf(this.#context, this.#snapshot);
    const wish = decideOn(this.#context, this.#snapshot, kept);
    const reserved = new Set(kept.map(({ uid }) => uid));
    const gate = await askGate(this.#context, this.#snapshot, wish, { reserved, mayAsk: false });
    const { stored, sidecarSet } = this.#snapshot;
    const isObservable = isGenerationObservable(stored.ledger, subjectOf(sidecarSet));
    await writeStatus(this.#context, this.#snapshot, narrow(wish, { gate }, reserved), { isObservable, mayWait: true });
  }
}
