/** Tests when a timer starts passes, and what happens to pages when their thread ends. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { threadBehind } from "../../functions/server/behind.ts";
import { createWakeUp, tickUntilAborted } from "../../functions/server/ticks.ts";
import { createLog } from "../../shared/log.ts";
import { DEFAULT_FEATURE_GATES } from "../../shared/settings/feature-gates.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";

const silent = createLog("error", () => undefined);

describe("passes on a timer:", () => {
  beforeEach(startVirtualTime);
  afterEach(stopVirtualTime);

  /** Returns the start times of passes that take `tookSeconds` each. `during`: runs in the second pass. */
  async function beginningsOf(tookSeconds: number, during = (_: () => void): void => undefined) {
    const [wakeUp, end, begun] = [createWakeUp(), new AbortController(), [] as number[]];
    const startMs = performance.now();
    await tickUntilAborted({
      connect: async () => {
        begun.push((performance.now() - startMs) / 1_000);
        if (begun.length === 2) during(wakeUp.wake);
        await new Promise((resolve) => setTimeout(resolve, tookSeconds * 1_000));
        if (begun.length === 4) end.abort();
        throw new Error("there is no cluster");
      },
      kruiseNamespace: "kruise-system",
      settings: DEFAULT_FEATURE_GATES,
      tickMs: 10_000,
      log: silent,
      wakeUp,
      signal: end.signal,
    });
    return begun;
  }

  test("a pass begins one tick after the last pass began, however long that took", async () => {
    expect(await beginningsOf(4)).toEqual([0, 10, 20, 30]);
  });

  test("a pass that takes longer than a tick is followed by the next one at once", async () => {
    expect(await beginningsOf(25)).toEqual([0, 25, 50, 75]);
  });

  test("a wake-up during a pass makes the next pass begin half a second after the running pass", async () => {
    expect(await beginningsOf(4, (wake) => wake())).toEqual([0, 10, 14.5, 24.5]);
  });
});

test("rendering a page fails when its thread ends without an answer", async () => {
  const text = `
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", () => process.exit());
    parentPort.postMessage({ kind: "ready" });`;
  const thread = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
  const quiet = { log: silent, print: () => undefined, onReport: () => undefined };
  const behind = threadBehind({ isReporting: false }, { ...quiet, thread });
  await behind.start();
  const page = behind.makePage({ isStill: true }).catch(String);
  // close resolves after the thread has ended.
  await behind.close();
  expect(await Promise.race([page, "no answer"])).toMatch("the thread of passes and pages has ended");
});

test("close waits for the working thread, even if an earlier thread ended with an error", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const text = `
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", (message) => {
      if (message === "wake") throw new Error("broken");
      setTimeout(() => {
        parentPort.postMessage({ kind: "log", lines: "over" });
        parentPort.close();
      }, 20);
    });
    parentPort.postMessage({ kind: "ready" });
    parentPort.postMessage({ kind: "log", lines: "begun" });`;
  const thread = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
  const printed: string[] = [];
  const print = (lines: string) => void printed.push(lines);
  const behind = threadBehind({ isReporting: false }, { log: silent, print, onReport: () => undefined, thread });
  await behind.start();
  behind.wake();
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
  };
  await until(() => vi.getTimerCount() > 0);
  await vi.advanceTimersByTimeAsync(5_000);
  await until(() => printed.length === 2);
  await behind.close();
  expect(printed).toEqual(["begun", "begun", "over"]);
});

test("close resolves even if the thread ends with an error", async () => {
  const text = `
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", () => {
      throw new Error("broken");
    });
    parentPort.postMessage({ kind: "ready" });`;
  const thread = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
  const quiet = { log: silent, print: () => undefined, onReport: () => undefined };
  const behind = threadBehind({ isReporting: false }, { ...quiet, thread });
  await behind.start();
  await expect(behind.close()).resolves.toBeUndefined();
});
