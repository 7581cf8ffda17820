/** Waits until its parent process has ended for any reason, and ends the processes that are left. */
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { clearNode } from "../node/leftovers.ts";

const processes = new Set<number>();
const folders = new Set<string>();
const nodes = new Set<string>();

/** Reads a line such as "started 123", "ended 123", "folder /tmp/x" or "node /tmp/y". */
function note(line: string): void {
  const [, verb, value = ""] = /^(\w+) (.*)$/.exec(line) ?? [];
  if (verb === "started") processes.add(Number(value));
  else if (verb === "ended") processes.delete(Number(value));
  else (verb === "node" ? nodes : folders).add(value);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}

const lines = createInterface({ input: process.stdin });
lines.on("line", note);
lines.on("close", async () => {
  for (const pid of processes) end(pid);
  for (const folder of nodes) await clearNode(folder);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});
