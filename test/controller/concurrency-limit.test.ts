import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Clock, systemClock } from "../../shared/controller/loop/clock.ts";
import { ConcurrencyLimit, mapWithin } from "../../shared/controller/loop/concurrency-limit.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

const items = Array.from({ length: 1_000 }, (_, index) => index);
const WAIT_MS = 50;
// A clock without load: a busy machine must not change the result.
const clock: Clock = { ...systemClock, sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };
const newLimit = () => new ConcurrencyLimit(32, clock);
let turns = 0;
const turn = () => new Promise((resolve) => setTimeout(resolve, 1 + (turns++ % 3)));

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

it("mapWithin starts items that may begin before it starts the others", async () => {
  const { seen, work } = server(4);
  await within(items, newLimit(), work, { mayBegin: (item) => item % 2 === 1 });
  const half = items.length / 2;
  expect(seen.done.slice(0, half - 4).every((item) => item % 2 === 1)).toBe(true);
  expect(seen.done).toHaveLength(items.length);
});

/** Runs the work on a clock that moves when everything waits. */
async function within(...args: Parameters<typeof mapWithin<number>>): Promise<void> {
  let isOver = false;
  const work = mapWithin(...args).finally(() => {
    isOver = true;
  });
  work.catch(() => undefined);
  while (!isOver) await vi.advanceTimersToNextTimerAsync();
  await work;
}

/** Returns an API server with that many seats. */
function server(seats: number) {
  const seen = { done: [] as number[], refusedAt: new Map<number, number>(), early: 0, refusals: 0, most: 0 };
  let underWay = 0;
  const work = async (item: number) => {
    const refusedAt = seen.refusedAt.get(item) ?? Number.NEGATIVE_INFINITY;
    if (clock.now() < refusedAt + WAIT_MS) seen.early++;
    if (underWay >= seats) {
      seen.refusals++;
      seen.refusedAt.set(item, clock.now());
      await turn();
      return WAIT_MS;
    }
    seen.most = Math.max(seen.most, ++underWay);
    await turn();
    underWay--;
    seen.done.push(item);
    return undefined;
  };
  return { seen, work };
}

it("mapWithin does every item once, with the maximum concurrency, when nothing is refused", async () => {
  const { seen, work } = server(1_000);
  await within(items, newLimit(), work);
  expect(seen.done.toSorted((a, b) => a - b)).toEqual(items);
  expect(seen).toMatchObject({ refusals: 0, most: 32 });
});

it("mapWithin keeps all seats of an API server busy and causes few refusals", async () => {
  const { seen, work } = server(4);
  await within(items, newLimit(), work);
  expect(seen.done.toSorted((a, b) => a - b)).toEqual(items);
  expect(seen.most).toBe(4);
  // The first four successes add a place each. Later every 32nd success adds one.
  expect(seen.refusals).toBeGreaterThanOrEqual(1);
  expect(seen.refusals).toBeLessThanOrEqual(4 + Math.ceil(items.length / 32));
  expect(seen.early, "sent again before its time").toBe(0);
});

it("a list starts with the last concurrency of the previous list, so that few calls are refused", async () => {
  const { seen, work } = server(4);
  const limit = newLimit();
  await within(items, limit, work);
  const before = seen.refusals;
  for (let list = 0; list < 3; list++) await within(items, limit, work);
  expect(seen.done).toHaveLength(4 * items.length);
  expect(seen.most).toBe(4);
  expect(before).toBeGreaterThanOrEqual(1);
  expect(seen.refusals - before).toBeLessThanOrEqual(3 * Math.ceil(items.length / 32));
});

it("the concurrency grows back to the maximum over many short lists", async () => {
  const limit = newLimit();
  await within(items, limit, server(1).work);
  const { seen, work } = server(1_000);
  const few = items.slice(0, 32);
  for (let list = 0; list < 40; list++) await within(few, limit, work);
  expect(seen).toMatchObject({ refusals: 0, most: 32 });
});

it("mapWithin does not raise the concurrency near the end of a list", async () => {
  const { seen, work } = server(4);
  const limit = newLimit();
  await within(items, limit, work);
  const before = seen.refusals;
  // Four items run until 32 have succeeded. One more may have begun.
  await within(items.slice(0, 4 * 32), limit, work);
  expect(seen.refusals - before).toBeLessThanOrEqual(1);
  expect(seen.early).toBe(0);
});

it("mapWithin gives up the remaining items when the API server refuses every call", async () => {
  const { seen, work } = server(0);
  await within(items, newLimit(), work);
  expect(seen.done).toEqual([]);
  expect(seen.refusals).toBe(3 + 5);
});

it("mapWithin stops at the first error and begins no further item", async () => {
  let begun = 0;
  const failing = within(items, newLimit(), async (item) => {
    begun++;
    await turn();
    // The later workers stop too.
    if (item >= 100) throw new Error("no answer");
    return undefined;
  });
  await expect(failing).rejects.toThrow("no answer");
  expect(begun).toBeLessThan(items.length);
});

it("mapWithin begins no further item, refused ones included, once its stop condition holds", async () => {
  const { seen, work } = server(4);
  const few = () => seen.done.length >= 50;
  await within(items, newLimit(), work, { isOver: few });
  expect(seen.done.length).toBeGreaterThanOrEqual(50);
  // The items that run are finished.
  expect(seen.done.length).toBeLessThanOrEqual(50 + 4);
});

/**
 * Runs items of `tookMs` each after a burst: all are refused before `untilMs`, with a wait of `waitMs`. The clock moves
 * when everything waits.
 */
function afterBurst({ untilMs, waitMs, tookMs }: Readonly<Record<"untilMs" | "waitMs" | "tookMs", number>>) {
  let nowMs = 0;
  const due: { readonly atMs: number; readonly wake: () => void }[] = [];
  const sleep = (ms: number) => new Promise<void>((wake) => due.push({ atMs: nowMs + ms, wake }));
  const tick = () => {
    due.sort((one, other) => one.atMs - other.atMs);
    const first = due.shift();
    if (!first) return;
    nowMs = first.atMs;
    first.wake();
  };
  const seen = { most: 0, underWay: 0 };
  const work = async () => {
    seen.most = Math.max(seen.most, ++seen.underWay);
    await sleep(tookMs);
    seen.underWay--;
    return nowMs < untilMs ? waitMs : undefined;
  };
  const run = async (limit: ConcurrencyLimit) => {
    seen.most = 0;
    let isOver = false;
    const done = mapWithin(Array.from({ length: 2_000 }), limit, work).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      tick();
      await new Promise(setImmediate);
    }
    await done;
    return seen.most;
  };
  return { clock: { ...systemClock, now: () => nowMs, sleep }, run };
}

it("the concurrency grows back to the maximum soon after an API server refused everything for a moment", async () => {
  const { clock, run } = afterBurst({ untilMs: 300, waitMs: 4_000, tookMs: 20 });
  const limit = new ConcurrencyLimit(32, clock);
  await run(limit);
  await run(limit);
  expect(await run(limit)).toBe(32);
});

/** Runs items of `tookMs` one at a time, and returns those done before the end. */
async function doneBy(endsAtMs: number, tookMs: (item: number) => number): Promise<readonly number[]> {
  let nowMs = 0;
  const clock = { ...systemClock, now: () => nowMs };
  const done: number[] = [];
  await mapWithin(items, new ConcurrencyLimit(1, clock, endsAtMs), async (item) => {
    nowMs += tookMs(item);
    done.push(item);
    return undefined;
  });
  expect(done, "in order").toEqual(items.slice(0, done.length));
  return done;
}

it("mapWithin begins no item that cannot be finished and recorded before the deadline", async () => {
  const done = await doneBy(60_000, () => 1_000);
  // One second is kept for the records, and nearly two for two items.
  expect(done).toHaveLength(58);
});

it("one slow item uses little of the time before the deadline", async () => {
  const done = await doneBy(60_000, (item) => (item === 0 ? 30_000 : 500));
  expect(done.length).toBeGreaterThan(55);
});

it("mapWithin reserves only a few seconds before the deadline when all items are slow", async () => {
  const done = await doneBy(60_000, () => 10_000);
  expect(done).toHaveLength(6);
});

/** Runs items one after the other, or `atMost` at once. The clock moves only when something sleeps. */
function stepped(atMost = 1) {
  const { clock: still, slept } = steppedClock();
  return { clock: still, slept, limit: new ConcurrencyLimit(atMost, still) };
}

describe("refused items:", () => {
  it("a refused item is sent again after exactly the wait that the API server asked for", async () => {
    const { clock: still, slept, limit } = stepped();
    const sent: number[] = [];
    await mapWithin(["one"], limit, async () => {
      sent.push(still.now());
      return sent.length < 3 ? WAIT_MS * sent.length : undefined;
    });
    expect(sent).toEqual([0, WAIT_MS, 3 * WAIT_MS]);
    expect(slept).toEqual([WAIT_MS, 2 * WAIT_MS]);
  });

  it("mapWithin does not wait for a refused item when the other items took long enough", async () => {
    const { clock: still, slept, limit } = stepped();
    const sent: string[] = [];
    await mapWithin(["refused", "other"], limit, async (item) => {
      sent.push(`${item} at ${still.now()}`);
      if (sent.length === 1) return WAIT_MS;
      if (item === "other") await still.sleep(WAIT_MS);
      return undefined;
    });
    expect(sent).toEqual(["refused at 0", "other at 0", `refused at ${WAIT_MS}`]);
    expect(slept, "by the other one alone").toEqual([WAIT_MS]);
  });
});

describe("workers that leave:", () => {
  it("mapWithin repeats a refused item when its worker is the last one", async () => {
    const { clock: shared } = sharedClock();
    const sent: string[] = [];
    await mapWithin(["quick", "slow"], new ConcurrencyLimit(2, shared), async (item) => {
      await shared.sleep(item === "quick" ? 1 : 10);
      return sent.push(item) === 2 ? WAIT_MS : undefined;
    });
    expect(sent).toEqual(["quick", "slow", "slow"]);
  });

  it("once the time is up mapWithin waits for no refused item", async () => {
    const { clock: shared } = sharedClock();
    const durations = [0, 1_000, 1_001];
    await mapWithin([0, 1, 2, 3], new ConcurrencyLimit(3, shared, 2_000), async (item) => {
      await shared.sleep(durations[item] ?? 0);
      return item === 0 ? 60_000 : undefined;
    });
    expect(shared.now()).toBe(1_001);
  });
});

it("mapWithin rejects with the first error itself, and begins no further item", async () => {
  const { clock: still, limit } = stepped(4);
  const error = new Error("no answer");
  const begun: number[] = [];
  const work = mapWithin(items, limit, async (item) => {
    begun.push(item);
    await still.sleep(item);
    if (item === 0) throw error;
    if (item === 1) throw new Error("a later one");
    return undefined;
  });
  await expect(work).rejects.toBe(error);
  expect(begun).toEqual([0, 1, 2, 3]);
});

describe("admitsAnother:", () => {
  it("the concurrency grows with each success until the first refusal, and then once per 32 successes", () => {
    const { limit } = stepped(32);
    expect(limit.begin()).toBe(4);
    expect(limit.admitsAnother(4, 100), "before any success").toBe(false);
    limit.succeed();
    expect(limit.admitsAnother(4, 100)).toBe(true);
    expect(limit.admitsAnother(5, 100), "without another success").toBe(false);
    limit.refuse(5, 0);
    const admits = Array.from({ length: 32 }, () => {
      limit.succeed();
      return limit.admitsAnother(4, 100);
    });
    expect(admits.indexOf(true)).toBe(31);
    expect(limit.begin(), "the next list begins with it").toBe(5);
  });

  it("the concurrency does not grow when no items are left for another worker", () => {
    const { limit } = stepped(32);
    limit.succeed();
    expect([limit.admitsAnother(4, 3), limit.admitsAnother(4, 4)]).toEqual([false, false]);
    expect(limit.admitsAnother(4, 5)).toBe(true);
  });
});

it("the limit allows items until one second before the deadline if items take no time", async () => {
  const { clock: still } = stepped();
  const limit = new ConcurrencyLimit(1, still, 10_000);
  await still.sleep(8_999);
  expect(limit.isTimeUp()).toBe(false);
  await still.sleep(1);
  expect(limit.isTimeUp()).toBe(true);
});
