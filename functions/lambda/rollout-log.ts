/** What Lambda's log says of a pass. */
import { isGraveStop, type PassReport, type SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { natureOf } from "../../shared/core/rollout/conditions/verdict.ts";
import { createLog, type Log } from "../../shared/log.ts";
import { embeddedMetrics } from "../../shared/metrics/embedded-metrics.ts";
import { readEmbedsMetrics, readStage } from "../../shared/settings/config.ts";

function logSidecarSet(log: Log, { name, stop, ...rest }: SidecarSetReport): void {
  const problems = [...rest.tally.problems, ...(rest.summary?.problems ?? [])];
  // Alarms count the lines that tell of missed pods and of trouble, whatever the level of the log.
  const isTrouble = rest.state !== undefined && natureOf(rest.state).isTrouble === true;
  const isGrave = isGraveStop(stop) || problems.length > 0 || (rest.missed?.count ?? 0) > 0 || isTrouble;
  log[isGrave ? "warn" : "info"](`SidecarSet ${name}`, { stop, ...rest });
}

/** `cluster`: of several. */
export function logReport(log: Log, report: PassReport, cluster?: string): void {
  const { sidecarSets, problems, ...pass } = report;
  for (const sidecarSet of sidecarSets) logSidecarSet(log, sidecarSet);
  for (const problem of problems) log.error(problem);
  // An alarm counts the lines that name some.
  log[pass.unread.length > 0 ? "warn" : "info"]("pass", pass);
  if (report.isDryRun || !readEmbedsMetrics()) return;
  // Whatever the level of the log: these lines are not for people.
  const of = { stage: readStage(), cluster };
  for (const fields of embeddedMetrics(report, Date.now(), of)) createLog("info").info("metrics", fields);
}
