/**
 * Stores each test's use of the processor in its `meta` for `npm run test:cost`: milliseconds of its thread, and of
 * ended processes that it started. The figure of processes needs one worker and Linux.
 */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    computedMs?: number;
  }
}

const MS_PER_CLOCK_TICK = 10;

/** The time of a file's imports counts for its first test, and the time of hooks for the test after them. */
let began = computedMs();

beforeEach(({ task }) => {
  task.meta.computedMs = computedMs() - began;
});

afterEach(({ task }) => {
  task.meta.computedMs = computedMs() - began;
  began = computedMs();
});

function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000 + endedProcessesMs();
}

/** Returns fields 16 and 17 of proc(5)'s stat: user and system time of children that were waited for. */
function endedProcessesMs(): number {
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) * MS_PER_CLOCK_TICK;
}
