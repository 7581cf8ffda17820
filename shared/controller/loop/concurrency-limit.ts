/** Works through a list under a limit that follows the API server: a refused worker ends, the others continue. */
import type { Clock } from "./clock.ts";

/** Workers at the start. Each success adds one, up to the limit, until the first refusal. */
const BEGIN_WITH = 4;
/** Number of successes that add one worker. A burst of refusals makes an API server ask for longer waits. */
const SUCCESSES_FOR_ANOTHER = 32;
/** Near the end of a list no worker is added: the remaining items must take longer than this many waits. */
const END_IN_WAITS = 2;
/** Limit of refusals in a row for the last worker: beyond it the rest is left. */
const MAX_REFUSALS = 5;
/** Time reserved for records, in addition to the typical time of two items. */
const RECORD_MS = 1_000;
/** Upper limit of both together, however slow the API server is. */
const MAX_RESERVE_MS = 6_000;
/** Weight of the newest item in the typical duration of an item: a single slow one must not end the work. */
const SHARE_OF_LAST = 1 / 8;

/**
 * The number of concurrent calls that the API server accepts, as far as is known. It lives from one list to the next.
 */
export class ConcurrencyLimit {
  readonly clock: Clock;
  readonly #atMost: number;
  readonly #endsAtMs: number;
  #width: number;
  #successes = 0;
  #successesForAnother = 1;
  #typicalMs = 0;
  #askedToWaitMs = 0;

  /** `endsAtMs`: on `clock`; no item begins that would end later */
  constructor(atMost: number, clock: Clock, endsAtMs = Number.POSITIVE_INFINITY) {
    this.#atMost = atMost;
    this.#endsAtMs = endsAtMs;
    this.#width = Math.min(BEGIN_WITH, atMost);
    this.clock = clock;
  }

  /** True when an item begun now would not be completed and recorded in time. */
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

  /** `waitMs`: that the API server asks for */
  refuse(active: number, waitMs: number): void {
    this.#askedToWaitMs = waitMs;
    this.#successesForAnother = SUCCESSES_FOR_ANOTHER;
    this.#width = Math.max(1, Math.min(this.#width, active - 1));
  }

  /** Near the end no worker is added, because the work would wait for it if it were refused. */
  admitsAnother(active: number, left: number): boolean {
    if (this.#successes < this.#successesForAnother || active >= this.#atMost) return false;
    const restMs = (left * this.#typicalMs) / active;
    if (left <= active || restMs < END_IN_WAITS * this.#askedToWaitMs) return false;
    this.#widen(active + 1);
    return true;
  }

  /** Widens the limit. The wait that the API server asked for fades unless it asks again. */
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
  /** called when an item begins; the returned function is called when the item ends */
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

  /** Never rejects: nobody would see the error before all workers end. */
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

  /** Undefined: this worker leaves, and others in the same turn must see that. */
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

  /** False: this worker has left. */
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
