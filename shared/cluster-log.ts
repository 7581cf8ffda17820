/** The log of one of several clusters: every line names it. */
import type { Log, LogFields } from "./log.ts";
import type { LogLevel } from "./settings/config.ts";

export function clusterLog(log: Log, cluster: string): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => log[level](message, { cluster, ...fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
