import { describe, expect, test } from "vitest";
import { fresh } from "../../shared/webhook/view/fresh.ts";

/** A source and a clock that the test controls. */
function source(freshnessMs: number, steady?: () => number) {
  const pending: { resolve(value: number): void; reject(error: Error): void }[] = [];
  let clock = 0;
  let [underWay, most] = [0, 0];
  const get = fresh({
    holdsForMs: () => freshnessMs,
    clocks: { now: () => clock, ...(steady ? { steady } : {}) },
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

  test("a value is used until its maximum age, counted from the start of its reading", async () => {
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

  test("a caller during a reading gets its result when that is still fresh", async () => {
    const { get, end, at, readings } = source(1000);
    const early = get();
    at(10);
    const late = get();
    await end(0, 1);
    expect([await early, await late]).toEqual([{ value: 1 }, { value: 1 }]);
    expect(readings()).toBe(1);
  });

  test("callers share the next reading when the current one began too long ago", async () => {
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

  test("with freshness 0 every caller gets a reading that began after its call", async () => {
    const { get, end, readings } = source(0);
    const first = get();
    await end(0, 1);
    expect(await first).toEqual({ value: 1 });
    const second = get();
    expect(readings()).toBe(2);
    await end(1, 2);
    expect(await second).toEqual({ value: 2 });
  });

  test("a value is used for up to five minutes, with the error, while reading fails", async () => {
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

  test("a first reading that fails is an error, and the next caller reads again", async () => {
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

  describe("after a caller waited for seconds in vain,", () => {
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

    test("others get the last value at once for five seconds, and one reading goes on in the background", async () => {
      const { get, readings, most, at } = await troubled();
      for (const time of [13_000, 15_000, 17_999]) {
        at(time);
        expect(await get()).toEqual({ value: 1, staleBecause: error });
      }
      expect([readings(), most()]).toEqual([3, 1]);
    });

    test("a reading in the background that succeeds ends it, and the next caller has a reading of its own", async () => {
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

  test("after a reading that fails at once the next caller has a reading of its own", async () => {
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
