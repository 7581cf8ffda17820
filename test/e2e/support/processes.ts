/** Starts child processes that always end with this process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";

export interface Started {
  readonly name: string;
  readonly isRunning: () => boolean;
  /** returns the last lines that the process wrote */
  readonly lastWords: () => string;
  /** Ends the process, and resolves after that. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

const running = new Set<ChildProcess>();
const folders = new Set<string>();
const STOP_TIMEOUT_MS = 5_000;

function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

let watchdog: ChildProcess | undefined;

/**
 * Writes to the watchdog, another process that sees the pipe's end, because SIGKILL cannot be handled. The watchdog has
 * its own session, which Ctrl-C does not reach.
 */
function tellWatchdog(line: string): void {
  if (watchdog === undefined) {
    const script = fileURLToPath(new URL("watchdog.ts", import.meta.url));
    watchdog = spawn(process.execPath, [script], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    watchdog.unref();
    (watchdog.stdin as Socket).unref();
  }
  watchdog.stdin?.write(`${line}\n`);
}

process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    killAll();
    // Another handler could keep the process alive.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** Removes the folder after the processes end. */
export function removeAtEnd(folder: string): void {
  folders.add(folder);
  tellWatchdog(`folder ${folder}`);
}

/** Removes what the node leaves when this process ends for any reason. */
export function clearNodeAtEnd(folder: string): void {
  tellWatchdog(`node ${folder}`);
}

/** Starts a process with its output in `logFile`. */
export function start(name: string, command: readonly string[], logFile: string): Started {
  const [program = "", ...args] = command;
  const log = openSync(logFile, "a");
  const child = spawn(program, args, { stdio: ["ignore", log, log] });
  closeSync(log);
  running.add(child);
  const isRunning = () => child.exitCode === null && child.signalCode === null && child.pid !== undefined;
  child.once("spawn", () => tellWatchdog(`started ${child.pid}`));
  child.once("exit", () => {
    running.delete(child);
    tellWatchdog(`ended ${child.pid}`);
  });
  child.once("error", () => running.delete(child));
  return {
    name,
    isRunning,
    lastWords: () => readFileSync(logFile, "utf8").split("\n").slice(-15).join("\n"),
    async stop(signal = "SIGTERM") {
      if (!isRunning()) return;
      const gone = once(child, "exit");
      child.kill(signal);
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await gone;
      clearTimeout(late);
    },
  };
}
