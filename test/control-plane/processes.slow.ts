import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const SCRIPT = fileURLToPath(new URL("start-and-wait.ts", import.meta.url));

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it.each([
  ["SIGKILL", []],
  ["SIGINT", []],
  ["SIGTERM", []],
  ["a failure of the runner", ["fail"]],
])("the control plane leaves no process and no file after %s", async (signal, args) => {
  const runner = spawn(process.execPath, [SCRIPT, ...args], { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await once(createInterface({ input: runner.stdout }), "line");
  const { pid, folder, isThere } = JSON.parse(line) as { pid: number; folder: string; isThere: boolean };
  expect({ isStarted: pid > 0, isThere }).toEqual({ isStarted: true, isThere: true });
  if (args.length === 0) runner.kill(signal as NodeJS.Signals);
  await expect.poll(() => isRunning(pid)).toBe(false);
  await expect.poll(() => existsSync(folder)).toBe(false);
});
