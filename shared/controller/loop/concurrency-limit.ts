/** Processes a list with as many workers as the API server accepts: a refused worker ends, the others continue. */
import type { Clock } from "./clock.ts";

/** Number of workers at the start. Each success adds one, up to the limit, until the first refusal. */
const BEGIN_WITH = 4;
/** Number of successes that add one worker. A burst of refusals makes an API server ask for longer waits. */
const SUCCESSES_FOR_ANOTHER = 32;
/** Near the end of a list no worker is added: the rest must take longer than this many waits. */
const END_IN_WAITS = 2;
/** Limit of refusals in a row for the last worker. Then the rest is left. */
const MAX_REFUSALS = 5;
/** Milliseconds reserved for records, in addition to the usual time of two items. */
const RECORD_MS = 1_000;
/** Limit of both times together, even if the API server is slow. */
const MAX_RESERVE_MS = 6_000;
/** Weight of the newest item in the usual duration of an item, so that one slow item does not end the work. */
const SHARE_OF_LAST = 1 / 8;

/** The number of parallel calls that the API server accepts, as far as it is known. It is kept between lists. */
export class ConcurrencyLimit {
  readonly clock: Clock;
  readonly #atMost: number;
  readonly #endsAtMs: number;
  #width: number;
  #successes = 0;
  #successesForAnother = 1;
  #typicalMs = 0;
  #askedToWaitMs = 0;

  /** `endsAtMs`: time on `clock`; no item begins that would end later */
  constructor(atMost: number, clock: Clock, endsAtMs = Number.POSITIVE_INFINITY) {
    this.#atMost = atMost;
    this.#endsAtMs = endsAtMs;
    this.#width = Math.min(BEGIN_WITH, atMost);
    this.clock = clock;
  }

  /** True if an item that begins now would not end in time, with its record. */
  isTimeUp(): boolean {
    const reserveMs = Math.min(RECORD_MS + 2 * this.#typicalMs, MAX_RESERVE_MS);
    return this.clock.now() >= this.#endsAtMs - reserveMs;
  }

  /** Records the duration of an item. */
  took(ms: number): void {
    this.#typicalMs += (ms - this.#typicalMs) * SHARE_OF_LAST;
  }

  /** The number of workers at the start of a list. */
  begin(): number {
    if (this.#successes >= this.#successesForAnother) this.#widen(this.#width + 1);
    return this.#width;
  }

  succeed(): void {
    this.#successes++;
  }

  /** Reduces the number of workers. `waitMs`: the wait that the API server asks for */
  refuse(active: number, waitMs: number): void {
    this.#askedToWaitMs = waitMs;
    this.#successesForAnother = SUCCESSES_FOR_ANOTHER;
    this.#width = Math.max(1, Math.min(this.#width, active - 1));
  }

  /** True if a worker may be added. Near the end none is, because the work would wait for it if it were refused. */
  admitsAnother(active: number, left: number): boolean {
    if (this.#successes < this.#successesForAnother || active >= this.#atMost) return false;
    const restMs = (left * this.#typicalMs) / active;
    if (left <= active || restMs < END_IN_WAITS * this.#askedToWaitMs) return false;
    this.#widen(active + 1);
    return true;
  }

  /** Raises the limit. The wait that the API server asked for shrinks unless it asks again. */
  #widen(to: number): void {
    this.#successes = 0;
    this.#askedToWaitMs /= 2;
    this.#width = Math.min(this.#atMost, Math.max(this.#width, to));
  }
}

type Work<T> = (item: T) => Promise<number | undefined>;

/**
 * `work` resolves to the wait that the API server asks for, in milliseconds, or undefined when the item is done, with
 * any result. A refused item is retried after the others, and not before that wait. The first error ends the work; so
 * do the end of the time, and `isOver`, which is asked before each item. Items that `mayBegin` accepts come first.
 */
export function mapWithin<T>(
  items: readonly T[],
  limit: ConcurrencyLimit,
  work: Work<T>,
  asked: Partial<ItemChecks<T>> = {},
): Promise<void> {
  return new LimitedWork(items, limit, work, {
    isOver: () => false,
    mayBegin: () => true,
    begin: () => () => undefined,
    ...asked,
  }).run();
}

interface ItemChecks<T> {
  readonly isOver: () => boolean;
  readonly mayBegin: (item: T) => boolean;
  /** called at the start of an item; the returned function is called at its end */
  readonly begin: (item: T) => () => void;
}

interface Queued<T> {
  readonly item: T;
  readonly atMs: number;
}

class LimitedWork<T> {
  readonly #limit: ConcurrencyLimit;
  readonly #work: Work<T>;
  readonly #asked: ItemChecks<T>;
  readonly #queue: Queued<T>[];
  #active = 0;
  #refusals = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(items: readonly T[], limit: ConcurrencyLimit, work: Work<T>, asked: ItemChecks<T>) {
    this.#queue = items.map((item) => ({ item, atMs: Number.NEGATIVE_INFINITY }));
    this.#limit = limit;
    this.#work = work;
    this.#asked = asked;
  }

  async run(): Promise<void> {
    const count = Math.min(this.#limit.begin(), this.#queue.length);
    await Promise.all(Array.from({ length: count }, () => this.#take()));
    if (this.#failure) throw this.#failure.error;
  }

  /** Runs a worker. It never rejects, because nobody would see the error before all workers end. */
  async #take(): Promise<void> {
    this.#active++;
    const others: Promise<void>[] = [];
    const { clock } = this.#limit;
    try {
      for (let next = this.#next(); next; next = this.#next()) {
        const earlyMs = next.atMs - clock.now();
        if (earlyMs > 0) await clock.sleep(earlyMs);
        if (this.#isOver()) break;
        const end = this.#asked.begin(next.item);
        const beganMs = clock.now();
        const waitMs = await this.#work(next.item).finally(end);
        this.#limit.took(clock.now() - beganMs);
        if (!this.#goesOn(next, waitMs)) break;
        if (this.#limit.admitsAnother(this.#active, this.#queue.length)) others.push(this.#take());
      }
    } catch (error) {
      this.#end();
      this.#failure ??= { error };
    }
    await Promise.all(others);
  }

  /** The next item; undefined: this worker ends. It counts as ended at once, so that others see it in the same turn. */
  #next(): Queued<T> | undefined {
    const { isOver, mayBegin } = this.#asked;
    const first = this.#queue.findIndex(({ item }) => mayBegin(item));
    const [next] = this.#queue.splice(Math.max(first, 0), 1);
    if (next && !isOver()) return next;
    this.#end();
    return undefined;
  }

  #isOver(): boolean {
    const isOver = this.#limit.isTimeUp() || this.#asked.isOver();
    if (isOver) this.#end();
    return isOver;
  }

  /** True if this worker continues; false: it has ended. */
  #goesOn({ item }: Queued<T>, waitMs: number | undefined): boolean {
    if (waitMs === undefined) {
      this.#limit.succeed();
      this.#refusals = 0;
      return true;
    }
    this.#queue.push({ item, atMs: this.#limit.clock.now() + waitMs });
    this.#limit.refuse(this.#active, waitMs);
    if (this.#active > 1) return this.#leave();
    return ++this.#refusals < MAX_REFUSALS || this.#end();
  }

  #leave(): false {
    this.#active--;
    return false;
  }

  #end(): false {
    this.#queue.length = 0;
    return this.#leave();
  }
}

/**
 * Runs `work` on each item, at most `limit` at a time; results keep the items' order. The first error ends it after the
 * running items have ended; `isOver` says that nobody needs the result any more.
 */
export function mapLimited<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, isOver: () => boolean) => Promise<R>,
): Promise<readonly R[]> {
  const results = new Array<R>(items.length);
  const rest = items.entries();
  const errors: unknown[] = [];
  const isOver = () => errors.length > 0;
  const worker = async () => {
    for (const [index, item] of rest) {
      if (isOver()) return;
      try {
        results[index] = await work(item, isOver);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  const workers = Array.from({ length: Math.min(limit, items.length) }, worker);
  return Promise.all(workers).then(() => {
    if (isOver()) throw errors[0];
    return results;
  });
}
