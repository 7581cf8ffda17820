/** A pass over Advanced StatefulSets in the log: one line for each set that still changes, and one for the pass. */
import type { SetPassReport } from "../../shared/controller/statefulset/report.ts";
import type { Log } from "../../shared/log.ts";

export function logSets(log: Log, { sets, problems, ...pass }: SetPassReport): void {
  for (const { namespace, name, stop, ...rest } of sets) {
    log[stop === "failed" ? "warn" : "info"](`StatefulSet ${namespace}/${name}`, { stop, ...rest });
  }
  for (const problem of problems) log.error(problem);
  log.info("pass over ordered sets", { ...pass, sets: sets.length });
}
