import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Breaker, fresh } from "../../shared/webhook/view/fresh.ts";
import { answeringOf, endTrouble } from "../../shared/webhook/view/trouble.ts";
import { seededChance } from "../simulation/chance.ts";

/** Returns a source and a clock that the test controls. */
function source(freshnessMs: number, steady?: () => number) {
  const pending: { resolve(value: number): void; reject(error: Error): void }[] = [];
  let clock = 0;
  let [underWay, most] = [0, 0];
  const get = fresh({
    holdsForMs: () => freshnessMs,
    breaker: new Breaker({ now: () => clock, steady: steady ?? (() => clock) }),
    read: () => {
      most = Math.max(most, ++underWay);
      return new Promise<number>((resolve, reject) => pending.push({ resolve, reject })).finally(() => underWay--);
    },
  });
  const end = async (index: number, outcome: number | Error) => {
    if (outcome instanceof Error) pending[index]?.reject(outcome);
    else pending[index]?.resolve(outcome);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { get, end, at: (time: number) => (clock = time), readings: () => pending.length, most: () => most };
}

describe("fresh:", () => {
  test("a value is read once for all concurrent callers", async () => {
    const { get, end, readings } = source(1000);
    const all = Promise.all(Array.from({ length: 100 }, () => get()));
    await end(0, 7);
    expect(new Set((await all).map(({ value }) => value))).toEqual(new Set([7]));
    expect(readings()).toBe(1);
  });

  test("a value is used until its maximum age, counted from the start of its read", async () => {
    const { get, end, at, readings } = source(1000);
    const first = get();
    at(400);
    await end(0, 1);
    await first;
    at(499);
    expect(await get()).toEqual({ value: 1 });
    expect(readings()).toBe(1);
    at(1000);
    const second = get();
    expect(readings()).toBe(2);
    await end(1, 2);
    expect(await second).toEqual({ value: 2 });
  });

  test("a value is read again in the second half of its age while callers still get it", async () => {
    const { get, end, at, readings } = source(1000);
    const first = get();
    await end(0, 1);
    await first;
    at(501);
    expect(get()).toEqual({ value: 1 });
    expect(get()).toEqual({ value: 1 });
    expect(readings()).toBe(2);
    at(999);
    await end(1, 2);
    expect(get()).toEqual({ value: 2 });
    at(1_001);
    expect(get()).toEqual({ value: 2 });
    expect(readings()).toBe(2);
  });

  test("a caller that comes during a read gets its result if the result is still fresh", async () => {
    const { get, end, at, readings } = source(1000);
    const early = get();
    at(10);
    const late = get();
    await end(0, 1);
    expect([await early, await late]).toEqual([{ value: 1 }, { value: 1 }]);
    expect(readings()).toBe(1);
  });

  test("callers share the next read when the current read began too long ago", async () => {
    const { get, end, at, readings, most } = source(1000);
    const early = get();
    at(1500);
    const late = Promise.all([get(), get(), get()]);
    expect(readings()).toBe(1);
    await end(0, 1);
    expect(await early).toEqual({ value: 1 });
    expect(readings()).toBe(2);
    await end(1, 2);
    expect(await late).toEqual([{ value: 2 }, { value: 2 }, { value: 2 }]);
    expect(most()).toBe(1);
  });

  test("with freshness 0 every caller gets the result of a read that began after its call", async () => {
    const { get, end, readings } = source(0);
    const first = get();
    await end(0, 1);
    expect(await first).toEqual({ value: 1 });
    const second = get();
    expect(readings()).toBe(2);
    await end(1, 2);
    expect(await second).toEqual({ value: 2 });
  });

  test("a value is used for up to five minutes, with the error, while reads fail", async () => {
    const { get, end, at } = source(1000);
    const first = get();
    await end(0, 1);
    await first;
    const error = new Error("refused");
    at(300_000);
    const stale = get();
    await end(1, error);
    expect(await stale).toEqual({ value: 1, staleBecause: error });
    at(300_001);
    const none = expect(get()).rejects.toBe(error);
    await end(2, error);
    await none;
  });

  test("a value is used for at most five minutes although the clock was set back", async () => {
    let steady = 0;
    const { get, end, at } = source(1000, () => steady);
    at(3_600_000);
    const first = get();
    await end(0, 1);
    await first;
    const error = new Error("refused");
    at(1_000);
    steady = 300_000;
    const stale = get();
    await end(1, error);
    expect(await stale).toEqual({ value: 1, staleBecause: error });
    steady = 300_001;
    const none = expect(get()).rejects.toBe(error);
    await end(2, error);
    await none;
  });

  test("a first read that fails is an error, and the next caller reads again", async () => {
    const { get, end, readings } = source(1000);
    const error = new Error("refused");
    const first = expect(get()).rejects.toBe(error);
    await end(0, error);
    await first;
    const second = get();
    expect(readings()).toBe(2);
    await end(1, 2);
    expect(await second).toEqual({ value: 2 });
  });

  test("a clock that was set back does not make an old value fresh", async () => {
    const { get, end, at, readings } = source(1000);
    at(10_000);
    const first = get();
    await end(0, 1);
    await first;
    at(5_000);
    const second = get();
    expect(readings()).toBe(2);
    await end(1, 2);
    expect(await second).toEqual({ value: 2 });
  });

  describe("after a caller waited for seconds without a result,", () => {
    const error = new Error("no answer");
    async function troubled() {
      const on = source(0);
      const first = on.get();
      await on.end(0, 1);
      await first;
      on.at(10_000);
      const slow = on.get();
      on.at(13_000);
      await on.end(1, error);
      expect(await slow).toEqual({ value: 1, staleBecause: error });
      return on;
    }

    test("other callers get the last value at once for five seconds, and one read continues in the background", async () => {
      const { get, readings, most, at } = await troubled();
      for (const time of [13_000, 15_000, 17_999]) {
        at(time);
        expect(await get()).toEqual({ value: 1, staleBecause: error });
      }
      expect([readings(), most()]).toEqual([3, 1]);
    });

    test("a successful read in the background ends the trouble, and the next caller has its own read", async () => {
      const { get, end, readings } = await troubled();
      await get();
      await end(2, 2);
      const next = get();
      expect(readings()).toBe(4);
      await end(3, 3);
      expect(await next).toEqual({ value: 3 });
    });

    test("one caller waits again after five seconds, and only one", async () => {
      const { get, end, at, readings } = await troubled();
      at(18_000);
      const waiting = get();
      expect(await get()).toEqual({ value: 1, staleBecause: error });
      expect(readings()).toBe(3);
      await end(2, 2);
      expect(await waiting).toEqual({ value: 2 });
    });

    test("the last value serves for five minutes and no longer", async () => {
      const { get, end, at } = await troubled();
      at(300_001);
      const none = expect(get()).rejects.toBe(error);
      await end(2, error);
      await none;
    });
  });

  test("after a read that fails at once the next caller has a read of its own", async () => {
    const { get, end, at, readings } = source(0);
    const first = get();
    await end(0, 1);
    await first;
    at(10_000);
    const failed = get();
    await end(1, new Error("refused"));
    expect(await failed).toMatchObject({ value: 1 });
    const next = get();
    expect(readings()).toBe(3);
    await end(2, 2);
    expect(await next).toEqual({ value: 2 });
  });
});

describe("an API server in trouble:", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  /** Lets milliseconds pass, with all events in them. */
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  /** Returns reads whose durations the test sets; undefined: forever. */
  function server() {
    const said: string[] = [];
    const log = {
      info: (message: string) => said.push(message),
      warn: (message: string) => said.push(message),
    };
    const breaker = new Breaker({ now: Date.now, log });
    const on = {
      takesMs: 10 as number | undefined,
      failure: undefined as Error | undefined,
      readings: 0,
      said,
      breaker,
    };
    const read = async () => {
      const { failure, takesMs } = on;
      const count = ++on.readings;
      await new Promise<void>((resolve) => takesMs !== undefined && setTimeout(resolve, takesMs));
      if (failure) throw failure;
      return count;
    };
    const reader = (holdsForMs = 250) => fresh({ breaker, holdsForMs: () => holdsForMs, read });
    return { on, reader };
  }

  /** Creates pods at a steady pace, and returns the milliseconds that each pod waited. */
  async function podsOf(get: () => unknown, { everyMs, forMs }: { everyMs: number; forMs: number }) {
    const waits: number[] = [];
    let [stale, failed] = [0, 0];
    const ask = async () => {
      const begun = Date.now();
      const answer = await Promise.resolve()
        .then(get)
        .catch(() => undefined);
      if (answer === undefined) failed++;
      else if (Object(answer)["staleBecause"] !== undefined) stale++;
      waits.push(Date.now() - begun);
    };
    for (let at = 0; at < forMs; at += everyMs) {
      void ask();
      await pass(everyMs);
    }
    await pass(10_000);
    return { pods: waits.length, waits, stale, failed };
  }

  test.each([
    ["takes 3 seconds", 3_000],
    ["never answers", undefined],
  ])(
    "while the API server %s, only one pod in five seconds waits for a second after the pods of the first second",
    async (_, takesMs) => {
      const { on, reader } = server();
      const get = reader();
      void get();
      await pass(1_000);
      on.takesMs = takesMs;
      const { pods, waits, stale, failed } = await podsOf(get, { everyMs: 20, forMs: 60_000 });
      const waited = waits.filter((ms) => ms > 0);
      const ofTheFirstSecond = 1_000 / 20;
      expect({ pods, failed }).toEqual({ pods: 3_000, failed: 0 });
      expect(waited.length).toBeGreaterThan(1);
      expect(waited.length).toBeLessThanOrEqual(ofTheFirstSecond + 2 + 60 / 5);
      expect(Math.max(...waits)).toBe(1_000);
      expect(stale).toBeGreaterThan(2_900);
      expect(on.said).toEqual([expect.stringContaining("does not answer in time")]);
      expect(answeringOf(on.breaker)).toBe("late");
    },
  );

  test("the first read that answers within a second ends the trouble, and the log says so", async () => {
    const { on, reader } = server();
    const get = reader();
    void get();
    await pass(1_000);
    on.takesMs = 4_000;
    void get();
    await pass(4_000);
    on.takesMs = 10;
    expect(await get()).toMatchObject({ value: 2, staleBecause: expect.any(Error) });
    await pass(10);
    expect(await get()).toEqual({ value: 3 });
    expect(on.said.at(-1)).toBe("the API server answers in time again");
  });

  test("the log names the end of the trouble although no pod came for a minute", async () => {
    const { on, reader } = server();
    const get = reader();
    void get();
    await pass(1_000);
    on.takesMs = 4_000;
    void get();
    await pass(60_000);
    on.takesMs = 10;
    const [first, second] = [get(), get()];
    await pass(20);
    expect([await first, await second]).toEqual([{ value: 3 }, { value: 3 }]);
    expect(on.said).toEqual([
      expect.stringContaining("does not answer in time"),
      "the API server answers in time again",
    ]);
    expect(answeringOf(on.breaker)).toBe("in time");
  });

  test("without a known value, pods get the reason at once after one pod waited four seconds, until another pod waits again", async () => {
    const { on, reader } = server();
    on.takesMs = undefined;
    const get = reader();
    const { waits, failed } = await podsOf(get, { everyMs: 500, forMs: 20_000 });
    expect(failed).toBe(40);
    // Pods may wait in the first four seconds, before the fault is known, and then once in each five seconds.
    expect(waits.filter((ms) => ms > 0).length).toBeLessThanOrEqual(8 + 4);
    expect(Math.max(...waits)).toBe(4_000);
    expect(answeringOf(on.breaker)).toBe("never");
    const waiting = expect(get()).rejects.toThrow("the API server has not answered within 4 s");
    await pass(4_000);
    await waiting;
    await expect(get()).rejects.toThrow("the API server has not answered within 4 s");
  });

  test("without a known value, a pod waits for an API server that takes three seconds", async () => {
    const { on, reader } = server();
    on.takesMs = 3_000;
    const { waits, failed } = await podsOf(reader(), { everyMs: 500, forMs: 3_000 });
    expect({ failed, most: Math.max(...waits) }).toEqual({ failed: 0, most: 4_000 });
  });

  test("after quick errors callers rest for five times as long as the error took", async () => {
    const { on, reader } = server();
    const get = reader(0);
    void get();
    await pass(1_000);
    [on.takesMs, on.failure] = [100, new Error("503")];
    const failing = get();
    await pass(100);
    expect(await failing).toEqual({ value: 1, staleBecause: on.failure });
    expect(await get()).toEqual({ value: 1, staleBecause: on.failure });
    expect(answeringOf(on.breaker)).toBe("with errors");
    [on.takesMs, on.failure] = [10, undefined];
    await pass(500);
    const again = get();
    await pass(20);
    expect(await again).toEqual({ value: on.readings });
    expect(on.said).toEqual([]);
  });

  test("after a background read of a minute, as in a frozen process, callers still wait for a new read", async () => {
    const { on, reader } = server();
    const get = reader();
    void get();
    await pass(200);
    on.takesMs = 60_000;
    expect(await get()).toEqual({ value: 1 });
    await pass(60_000);
    on.takesMs = 10;
    const next = get();
    await pass(10);
    expect(await next).toEqual({ value: 3 });
  });

  test.each([0, 250, 2_000])(
    "with a freshness of %s ms, no answer is older than a read that ended before it, however slow and faulty reads are",
    async (holdsForMs) => {
      const { next: random, isLucky } = seededChance(holdsForMs);
      for (let world = 0; world < 40; world++) {
        const begun: number[] = [];
        const ended: { value: number; at: number }[] = [];
        const read = async () => {
          const value = begun.push(Date.now()) - 1;
          await new Promise((resolve) => setTimeout(resolve, Math.floor(5_000 * random() ** 3)));
          if (isLucky(0.2)) throw new Error("503");
          ended.push({ value, at: Date.now() });
          return value;
        };
        const get = fresh({ breaker: new Breaker({ now: Date.now }), holdsForMs: () => holdsForMs, read });
        /** Returns the greatest age of the answer to a caller who asked at that time. */
        const oldest = (asked: number, isStale: boolean) => {
          const known = ended.filter(({ at }) => at < Date.now()).map(({ value }) => value);
          const tooOld = isStale ? 0 : begun.filter((at) => at < asked - holdsForMs).length;
          return Math.max(tooOld, ...known);
        };
        const ask = async () => {
          const asked = Date.now();
          const answer = await get();
          expect(answer.value).toBeGreaterThanOrEqual(oldest(asked, "staleBecause" in answer));
        };
        const asking: Promise<PromiseSettledResult<void>[]>[] = [];
        for (let pods = 0; pods < 30; pods++) {
          asking.push(Promise.allSettled([ask()]));
          await pass(Math.floor(1_500 * random() ** 2));
        }
        await pass(20_000);
        const failures = (await Promise.all(asking))
          .flat()
          .flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
        expect(failures.filter(({ message }) => !/503|has not answered/.test(message))).toEqual([]);
      }
    },
  );
});

test("an API server that answers again, even if late, no longer counts as silent", () => {
  const breaker = new Breaker({ now: Date.now });
  const trouble = { restMs: 5_000, because: new Error("no answer"), isSaid: true, seen: breaker.moment() };
  breaker.trouble = { ...trouble, isSilent: true };
  expect(answeringOf(breaker)).toBe("never");
  endTrouble(breaker, 3_000);
  expect(answeringOf(breaker)).toBe("late");
  endTrouble(breaker, 10);
  expect(answeringOf(breaker)).toBe("in time");
});
