/** Starts a process as the tests on a real control plane do, prints its pid and its folder, and waits until it ends. */
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtEnd, start } from "../e2e/support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "sidecarset-processes-"));
removeAtEnd(folder);
const code = "setInterval(() => {}, 1000); console.log(process.pid)";
const started = start("sleeper", [process.execPath, "-e", code], join(folder, "log"));
const said = setInterval(() => {
  const pid = Number(started.lastWords());
  if (pid === 0) return;
  clearInterval(said);
  process.stdout.write(`${JSON.stringify({ pid, folder, isThere: existsSync(folder) })}\n`);
  if (process.argv[2] === "fail") throw new Error("a failure");
}, 20);
setInterval(() => {}, 1000);
