/** Holds a call back for as long as the API server has asked to wait when it was sent last, by any caller. */
import { isKubeError } from "../../kube/error.ts";
import type { Clock } from "./clock.ts";

/** What an API server asks to wait is heeded up to here. */
const MOST_MS = 5_000;

export class RetryAfter {
  readonly #clock: Clock;
  readonly #over: AbortSignal;
  /** call and target → when it may be sent again, on the clock */
  readonly #notBefore = new Map<string, number>();

  /** `over` aborts when nothing is waited for any more */
  constructor(clock: Clock, over: AbortSignal) {
    this.#clock = clock;
    this.#over = over;
  }

  async heed<T>(key: string, send: () => Promise<T>): Promise<T> {
    if (this.#notBefore.has(key)) await this.#wait(key);
    return await send().catch((error: unknown) => this.#note(key, error));
  }

  async *heedStream<T>(key: string, open: () => AsyncIterable<T>): AsyncGenerator<T> {
    if (this.#notBefore.has(key)) await this.#wait(key);
    try {
      yield* open();
    } catch (error) {
      this.#note(key, error);
    }
  }

  async #wait(key: string): Promise<void> {
    // Of several that were under way, another may be asked to wait for longer meanwhile.
    while (this.#leftMs(key) > 0 && !this.#over.aborted) await this.#clock.sleep(this.#leftMs(key), this.#over);
    this.#notBefore.delete(key);
  }

  #leftMs(key: string): number {
    return (this.#notBefore.get(key) ?? 0) - this.#clock.now();
  }

  #note(key: string, error: unknown): never {
    const { retryAfterSeconds = 0 } = isKubeError(error) ? error : {};
    if (retryAfterSeconds > 0)
      this.#notBefore.set(key, this.#clock.now() + Math.min(MOST_MS, 1_000 * retryAfterSeconds));
    throw error;
  }
}
