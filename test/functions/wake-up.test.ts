import { expect, test } from "vitest";
import { createWakeUp } from "../../functions/server/wake-up.ts";

const LONG_MS = 60_000;
const never = new AbortController().signal;

async function lasting(rest: Promise<void>): Promise<number> {
  const began = performance.now();
  await rest;
  return performance.now() - began;
}

test("sleep lasts as long as it shall", async () => {
  expect(await lasting(createWakeUp().sleep(50, never))).toBeGreaterThan(40);
});

test("a wake-up ends the sleep under way, soon", async () => {
  const wakeUp = createWakeUp();
  const slept = lasting(wakeUp.sleep(LONG_MS, never));
  wakeUp.wake();
  expect(await slept).toBeLessThan(LONG_MS / 2);
});

test("a wake-up between two sleeps ends the next one, and only that", async () => {
  const wakeUp = createWakeUp();
  wakeUp.wake();
  wakeUp.wake();
  expect(await lasting(wakeUp.sleep(LONG_MS, never))).toBeLessThan(LONG_MS / 2);
  const end = new AbortController();
  const next = wakeUp.sleep(LONG_MS, end.signal).then(() => "over");
  expect(await Promise.race([next, new Promise((resolve) => setTimeout(resolve, 50, "asleep"))])).toBe("asleep");
  end.abort();
  expect(await next).toBe("over");
});

test("a signal ends sleep at once", async () => {
  const end = new AbortController();
  const slept = createWakeUp().sleep(LONG_MS, end.signal);
  end.abort();
  await slept;
});
