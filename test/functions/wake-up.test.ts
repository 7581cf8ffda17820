import { afterEach, beforeEach, expect, test } from "vitest";
import { createWakeUp } from "../../functions/server/ticks.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";

const LONG_MS = 60_000;
const SOON_MS = 500;
const never = new AbortController().signal;

beforeEach(startVirtualTime);
afterEach(stopVirtualTime);

async function lasting(rest: Promise<void>): Promise<number> {
  const began = performance.now();
  await rest;
  return performance.now() - began;
}

test("a sleep lasts as long as its argument says", async () => {
  expect(await lasting(createWakeUp().sleep(LONG_MS, never))).toBe(LONG_MS);
});

test("a wake-up ends the current sleep half a second later", async () => {
  const wakeUp = createWakeUp();
  const slept = lasting(wakeUp.sleep(LONG_MS, never));
  wakeUp.wake();
  expect(await slept).toBe(SOON_MS);
});

test("a wake-up between two sleeps shortens only the next sleep", async () => {
  const wakeUp = createWakeUp();
  wakeUp.wake();
  wakeUp.wake();
  expect(await lasting(wakeUp.sleep(LONG_MS, never))).toBe(SOON_MS);
  expect(await lasting(wakeUp.sleep(LONG_MS, never))).toBe(LONG_MS);
});

test("a wake-up during the half second before work shortens the next sleep", async () => {
  const wakeUp = createWakeUp();
  wakeUp.wake();
  const slept = wakeUp.sleep(LONG_MS, never);
  await new Promise((resolve) => setTimeout(resolve, SOON_MS / 2));
  wakeUp.wake();
  await slept;
  expect(await lasting(wakeUp.sleep(LONG_MS, never))).toBe(SOON_MS);
});

test("an aborted signal ends a sleep at once", async () => {
  const end = new AbortController();
  const slept = lasting(createWakeUp().sleep(LONG_MS, end.signal));
  end.abort();
  expect(await slept).toBe(0);
});
