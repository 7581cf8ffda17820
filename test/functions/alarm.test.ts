import { expect, test } from "vitest";
import { createAlarm } from "../../functions/server/alarm.ts";

const LONG_MS = 60_000;
const never = new AbortController().signal;

async function lasting(rest: Promise<void>): Promise<number> {
  const began = performance.now();
  await rest;
  return performance.now() - began;
}

test("a rest lasts as long as it shall", async () => {
  expect(await lasting(createAlarm().rest(50, never))).toBeGreaterThan(40);
});

test("the alarm ends the rest under way, soon", async () => {
  const alarm = createAlarm();
  const rest = lasting(alarm.rest(LONG_MS, never));
  alarm.ring();
  expect(await rest).toBeLessThan(LONG_MS / 2);
});

test("an alarm while nobody rests ends the next rest, and only that", async () => {
  const alarm = createAlarm();
  alarm.ring();
  alarm.ring();
  expect(await lasting(alarm.rest(LONG_MS, never))).toBeLessThan(LONG_MS / 2);
  const end = new AbortController();
  const next = alarm.rest(LONG_MS, end.signal).then(() => "over");
  expect(await Promise.race([next, new Promise((resolve) => setTimeout(resolve, 50, "resting"))])).toBe("resting");
  end.abort();
  expect(await next).toBe("over");
});

test("a signal ends a rest at once", async () => {
  const end = new AbortController();
  const rest = createAlarm().rest(LONG_MS, end.signal);
  end.abort();
  await rest;
});
