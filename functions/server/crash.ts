/** The last line of a process that ends by an uncaught error, without any secret. */
import type { Log } from "../../shared/log.ts";

/** Lines of a process that goes on are written this soon. */
const WRITTEN_MS = 50;
/** Slow readers of the last lines are waited for no longer than this. */
const MOST_MS = 1_000;

/**
 * Logs crashes: Node alone would print the bare error, and lose lines that a pipe has not taken yet. The exit code is
 * 1.
 */
export function logCrashes(log: Log): void {
  const end = () => process.exit(1);
  process.on("uncaughtException", (error) => {
    log.error("the process ends by an error that was not caught", { error });
    setTimeout(() => process.stdout.write("", end), WRITTEN_MS);
    setTimeout(end, MOST_MS);
  });
}

// The end of a process that has done all there was to do.

/** The time in which last lines are printed. */
const PRINTED_MS = 100;

/** Ends the process soon, also while calls run that nobody waits for: a silent API server keeps one for 30 seconds. */
export function endSoon(): void {
  setTimeout(() => process.exit(), PRINTED_MS).unref();
}
