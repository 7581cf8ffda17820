/** A FIFO queue that hands its messages to functions, as SQS does: groups in order, ids that count once, failures that come back. */
import type { Message } from "../../../shared/core/rollout/queue/work.ts";
import type { Timeline } from "../scheduler.ts";

/** infra/aws/queue.ts */
export const VISIBILITY_MS = 70_000;
export const MAX_RECEIVES = 5;
/** An id counts once in this time. */
const DEDUPLICATION_MS = 5 * 60_000;

export interface Kept {
  readonly message: Message;
  readonly sentMs: number;
  receives: number;
  /** handed out, or failed a while ago: nothing of its group is handed out meanwhile */
  isHidden: boolean;
}

export class Fifo {
  readonly #timeline: Timeline;
  readonly #ids = new Map<string, number>();
  #kept: Kept[] = [];
  /** given up */
  readonly failed: Kept[] = [];
  sent = 0;
  /** sent again within five minutes, and not kept */
  dropped = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  get length(): number {
    return this.#kept.length;
  }

  send(message: Message): void {
    const { nowMs } = this.#timeline;
    const id = `${message.MessageGroupId} ${message.MessageDeduplicationId}`;
    this.sent++;
    if (nowMs - (this.#ids.get(id) ?? Number.NEGATIVE_INFINITY) < DEDUPLICATION_MS) this.dropped++;
    else {
      this.#ids.set(id, nowMs);
      this.#kept.push({ message, sentMs: nowMs, receives: 0, isHidden: false });
    }
  }

  /** The oldest message of a group that no worker serves. */
  receive(): Kept | undefined {
    const busy = new Set<string>();
    for (const kept of this.#kept) {
      const { MessageGroupId } = kept.message;
      if (!kept.isHidden && !busy.has(MessageGroupId)) {
        kept.isHidden = true;
        kept.receives++;
        return kept;
      }
      busy.add(MessageGroupId);
    }
    return undefined;
  }

  served(kept: Kept): void {
    this.#kept = this.#kept.filter((one) => one !== kept);
  }

  /** Returns the message to the queue, which handed it out `handedOutMs` ago. */
  failedBy(kept: Kept, handedOutMs: number, then: () => void): void {
    this.#timeline.after(VISIBILITY_MS - handedOutMs, () => {
      kept.isHidden = false;
      if (kept.receives >= MAX_RECEIVES) {
        this.served(kept);
        this.failed.push(kept);
      }
      then();
    });
  }
}
