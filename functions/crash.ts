/** The last words of a process that ends by an error nobody caught: one line in the log, without any secret. */
import type { Log } from "../shared/log.ts";

/** Node alone would print the error as it is. The exit code is 1. */
export function logCrashes(log: Log): void {
  process.on("uncaughtException", (error) => {
    log.error("the process ends by an error that nobody caught", { error });
    process.exit(1);
  });
}
