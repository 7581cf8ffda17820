import { afterEach, expect, test, vi } from "vitest";
import { createLog } from "../../shared/log.ts";
import { readiness } from "../../shared/webhook/review/readiness.ts";

afterEach(() => {
  vi.useRealTimers();
});

const answerOf = async (answering: ReturnType<ReturnType<typeof readiness>>) => {
  const { status, body } = await answering;
  return [status, body];
};

function asked(check: (times: number) => unknown) {
  const lines: string[] = [];
  let times = 0;
  const log = createLog("info", (line) => lines.push(line));
  const isReady = readiness({ log, checkReady: () => check(++times) });
  return { isReady, times: () => times, logged: () => lines.map((line) => JSON.parse(line) as object) };
}

test("without a check the webhook is ready", async () => {
  const isReady = readiness({ log: createLog("error", () => undefined) });
  expect(await answerOf(isReady(false))).toEqual([200, "ok"]);
});

test("known callers and the log get the reason why the webhook is not ready", async () => {
  const { isReady, logged } = asked(() => Promise.reject(new Error("nobody listens")));
  expect(await answerOf(isReady(true))).toEqual([503, "not ready, the log says why"]);
  expect(await answerOf(isReady(false))).toEqual([503, "nobody listens"]);
  expect(logged()).toMatchObject([
    { level: "warn", message: "not ready", requests: 1, error: { message: "nobody listens" } },
  ]);
});

test('a check that fails without a reason answers "not ready"', async () => {
  const { isReady } = asked(() => Promise.reject());
  expect(await answerOf(isReady(false))).toEqual([503, "not ready"]);
});

test("callers within a second share one check, and later callers cause a new check", async () => {
  vi.useFakeTimers({ toFake: ["performance"], now: 60_000 });
  vi.advanceTimersByTime(60_000);
  const { isReady, times } = asked((time) => (time === 1 ? Promise.reject(new Error("not yet")) : "well"));
  expect(await Promise.all([answerOf(isReady(false)), answerOf(isReady(false))])).toEqual([
    [503, "not yet"],
    [503, "not yet"],
  ]);
  vi.advanceTimersByTime(999);
  expect(await answerOf(isReady(false))).toEqual([503, "not yet"]);
  expect(times()).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await answerOf(isReady(false))).toEqual([200, "ok"]);
  expect(times()).toBe(2);
});
