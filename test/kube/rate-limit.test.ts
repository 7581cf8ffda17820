import { expect, test } from "vitest";
import { limiter } from "../../shared/kube/rate-limit.ts";

/** Runs calls as a client does. */
function within(...given: Parameters<typeof limiter>) {
  const { enter, leave } = limiter(...given);
  return (work: () => Promise<void>) => enter().then(work).finally(leave);
}

/** A clock that advances only during sleep. */
function simulatedTime() {
  let nowMs = 0;
  const sleepers: { atMs: number; wake: () => void }[] = [];
  const sleep = (ms: number) => new Promise<void>((wake) => sleepers.push({ atMs: nowMs + ms, wake }));
  const run = async () => {
    for (;;) {
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
      sleepers.sort((one, other) => one.atMs - other.atMs);
      const next = sleepers.shift();
      if (!next) return;
      nowMs = Math.max(nowMs, next.atMs);
      next.wake();
    }
  };
  return { now: () => nowMs, sleep, run };
}

test.each([
  { qps: 10, burst: 5, calls: 105, seconds: 10 },
  { qps: 50, burst: 1, calls: 101, seconds: 2 },
  { qps: 0, burst: 0, calls: 1000, seconds: 0 },
])(
  "limiter spreads $calls calls at $qps per second with a burst of $burst over $seconds s",
  async ({ qps, burst, calls, seconds }) => {
    const time = simulatedTime();
    const limited = within({ qps, burst, atOnce: 1_000 }, time);
    const startedAtMs: number[] = [];
    const all = Array.from({ length: calls }, () =>
      limited(async () => {
        startedAtMs.push(time.now());
      }),
    );
    await time.run();
    await Promise.all(all);
    expect(startedAtMs).toHaveLength(calls);
    expect(startedAtMs.at(-1)).toBeCloseTo(seconds * 1000, 0);
  },
);

test("after a pause of a minute limiter allows one full burst and no more", async () => {
  const time = simulatedTime();
  const limited = within({ qps: 10, burst: 5, atOnce: 100 }, time);
  const started: number[] = [];
  const call = () => limited(async () => void started.push(time.now()));
  const first = Array.from({ length: 5 }, call);
  await time.run();
  const pause = time.sleep(60_000);
  await time.run();
  const second = Array.from({ length: 6 }, call);
  await time.run();
  await Promise.all([...first, pause, ...second]);
  expect(started.map((ms) => Math.round(ms))).toEqual([0, 0, 0, 0, 0, 60_000, 60_000, 60_000, 60_000, 60_000, 60_100]);
});

test("limiter runs at most atOnce calls at the same time, and a failed call frees its place", async () => {
  const time = simulatedTime();
  const limited = within({ qps: 0, burst: 0, atOnce: 3 }, time);
  let [underWay, most] = [0, 0];
  const calls = Array.from({ length: 20 }, (_, index) =>
    limited(async () => {
      most = Math.max(most, ++underWay);
      await time.sleep(10);
      underWay--;
      if (index % 2 === 0) throw new Error("refused");
    }),
  );
  const settled = Promise.allSettled(calls);
  await time.run();
  const results = await settled;
  expect(most).toBe(3);
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(10);
});
