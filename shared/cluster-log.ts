/** Logs with a common field in every line: one of several clusters, or an invocation. */
import type { Log, LogFields, LogLevel } from "./log.ts";

/** The message of a pass that failed as a whole. Alarms search for it. */
export const PASS_FAILED = "the pass over the cluster failed";

/** A log that adds `named` to every line. */
export function logWith(log: Log, named: LogFields): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => log[level](message, { ...named, ...fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
