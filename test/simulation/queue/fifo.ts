/**
 * A FIFO queue that gives its messages to functions as SQS does. The messages of a group come in order, a repeated id
 * is dropped, and a failed message comes again.
 */
import type { Message } from "../../../shared/core/rollout/queue/work.ts";
import type { Timeline } from "../scheduler.ts";

/** The queue's visibility timeout, as in infra/aws/queue.ts. */
export const VISIBILITY_MS = 70_000;
export const MAX_RECEIVES = 5;
/** Time in which a second message with the same id is dropped. */
const DEDUPLICATION_MS = 5 * 60_000;

export interface Kept {
  readonly message: Message;
  readonly sentMs: number;
  receives: number;
  /** true while a worker has the message, or shortly after a failure; no message of its group is handed out then */
  isHidden: boolean;
}

export class Fifo {
  readonly #timeline: Timeline;
  readonly #ids = new Map<string, number>();
  #kept: Kept[] = [];
  /** messages that failed too often */
  readonly failed: Kept[] = [];
  sent = 0;
  /** number of messages dropped because their id was sent within five minutes */
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

  /** Hands out the oldest message of a group that no worker serves. */
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

  /** Puts the message back into the queue, which handed it out `handedOutMs` ago. */
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
