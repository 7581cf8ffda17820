/** Virtual time. Events run in order. Between two events all promises settle that can. */

/** The clock of a world, and its planned events. */
export interface Timeline {
  /** milliseconds since the epoch */
  readonly nowMs: number;
  /** Runs `run` later. The returned function cancels it. */
  readonly after: (delayMs: number, run: () => void) => () => void;
}

interface Entry {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

export class Scheduler implements Timeline {
  readonly #heap: Entry[] = [];
  #order = 0;
  #ran = 0;
  #nowMs: number;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  /** milliseconds since the epoch in the world; the clocks of processes may differ */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events of the same time run in the order in which they were planned. The returned function cancels the event. */
  after(delayMs: number, run: () => void): () => void {
    const entry: Entry = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#push(entry);
    return () => {
      entry.run = undefined;
    };
  }

  /** Runs events until `isOver` returns true, or no event is left. Returns false in the second case. */
  async runUntil(isOver: () => boolean): Promise<boolean> {
    await drained();
    while (!isOver()) {
      const entry = this.#pop();
      if (!entry) return false;
      if (!entry.run) continue;
      this.#nowMs = Math.max(this.#nowMs, entry.atMs);
      this.#ran++;
      entry.run();
      await drained();
    }
    return true;
  }

  get isPending(): boolean {
    return this.#heap.some(({ run }) => run !== undefined);
  }

  /** Resolves when all started work waits for something. */
  settle(): Promise<void> {
    return drained();
  }

  /** Runs the next event, at any time. */
  async runNext(): Promise<void> {
    const before = this.#ran;
    await this.runUntil(() => this.#ran > before);
  }

  async runFor(ms: number): Promise<void> {
    let isOver = false;
    this.after(ms, () => {
      isOver = true;
    });
    await this.runUntil(() => isOver);
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    heap.push(entry);
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, at(heap, parent))) break;
      heap[index] = at(heap, parent);
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(at(heap, child + 1), at(heap, child))) child++;
      if (!isBefore(at(heap, child), last)) break;
      heap[index] = at(heap, child);
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

/**
 * Resolves after every promise has settled that can. The world uses no timers of this process, and a tick comes after
 * all microtasks. A tick is several times as fast as a turn of the event loop.
 */
function drained(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs === b.atMs ? a.order < b.order : a.atMs < b.atMs;
}

function at(heap: readonly Entry[], index: number): Entry {
  const entry = heap[index];
  if (!entry) throw new Error(`no event at ${index}`);
  return entry;
}
