/** Level-triggered controllers: keys to look at, each by one worker at a time, again after a failure. */
import type { Api } from "../storage/api.ts";
import type { Change } from "../storage/store.ts";

export interface Controller {
  /** Resolves when nothing of it runs any more. */
  close(): Promise<void>;
}

export interface ControllerParts {
  /** Keys to look at after a change. */
  keysOf(change: Change): readonly string[];
  /** Brings one object closer to its wanted state. May be called at any time, also for deleted objects. */
  reconcile(key: string): Promise<void>;
}

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 2_000;

class WorkQueue implements Controller {
  readonly #api: Api;
  readonly #parts: ControllerParts;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, number>();
  readonly #unsubscribe: () => void;
  #isClosed = false;

  constructor(api: Api, parts: ControllerParts) {
    this.#api = api;
    this.#parts = parts;
    this.#unsubscribe = api.store.subscribe((change) => {
      for (const key of parts.keysOf(change)) this.#add(key);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#waiting.clear();
    await Promise.allSettled(this.#running.values());
  }

  #add(key: string): void {
    if (this.#isClosed || this.#waiting.has(key)) return;
    this.#waiting.add(key);
    // Later, and not within the write that made the change.
    if (!this.#running.has(key)) setImmediate(() => this.#begin(key));
  }

  #begin(key: string): void {
    if (this.#isClosed || this.#running.has(key) || !this.#waiting.delete(key)) return;
    const run = this.#run(key).finally(() => {
      this.#running.delete(key);
      if (this.#waiting.has(key)) setImmediate(() => this.#begin(key));
    });
    this.#running.set(key, run);
  }

  async #run(key: string): Promise<void> {
    try {
      await this.#parts.reconcile(key);
      this.#failures.delete(key);
    } catch {
      // Every failure, such as a webhook that is down or a conflict, is retried, ever more slowly.
      const failures = (this.#failures.get(key) ?? 0) + 1;
      this.#failures.set(key, failures);
      this.#api.clock.after(Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS), () => this.#add(key));
    }
  }
}

export function runController(api: Api, parts: ControllerParts): Controller {
  return new WorkQueue(api, parts);
}
