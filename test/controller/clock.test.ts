/** Tests the clock of the machine, and the list of problems. */
import { expect, test } from "vitest";
import { note, systemClock } from "../../shared/controller/loop/clock.ts";

test("a sleep lasts its time, by a clock that counts milliseconds", async () => {
  const before = [systemClock.now(), systemClock.epochMs()] as const;
  await systemClock.sleep(20, new AbortController().signal);
  // A timer may fire a millisecond early.
  expect(systemClock.now() - before[0]).toBeGreaterThanOrEqual(19);
  expect(systemClock.epochMs() - before[1]).toBeGreaterThanOrEqual(15);
});

test("a sleep without a signal lasts its time too", async () => {
  const began = performance.now();
  await systemClock.sleep(20);
  expect(performance.now() - began).toBeGreaterThanOrEqual(19);
});

test("a sleep ends without an error as soon as its signal aborts", async () => {
  const ending = new AbortController();
  const slept = systemClock.sleep(3_600_000, ending.signal);
  ending.abort();
  await expect(slept).resolves.toBeUndefined();
});

test("a problem is recorded once, and other problems in their order", () => {
  const problems: string[] = [];
  for (const problem of ["a", "b", "a"]) note({ problems }, problem);
  expect(problems).toEqual(["a", "b"]);
});
