/** What Lambda's log says of a pass. */
import { isGraveStop, type PassReport, type SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { natureOf } from "../../shared/core/rollout/conditions/verdict.ts";
import { createLog, type Log } from "../../shared/log.ts";
import { embeddedMetrics } from "../../shared/metrics/embedded-metrics.ts";
import { readEmbedsMetrics, readStage } from "../../shared/settings/config.ts";

/** So long a SidecarSet needs attention before somebody is called, and after so long nobody is called any more. */
const [ATTENTION_MS, CALLED_MS] = [600_000, 1_200_000];

/** An alarm counts lines that have it, for ten minutes: then it ends, and hears of the next SidecarSet. `failing`: since when. */
function attentionSince(
  { state, troubleSince }: SidecarSetReport,
  failing: string | undefined,
  nowMs: number,
): string | undefined {
  const isTrouble = state !== undefined && natureOf(state).isTrouble === true;
  // OpenKruise's definition does not tell: then the alarm lasts as long as the trouble.
  const since = failing ?? (isTrouble ? (troubleSince ?? "unknown") : undefined);
  if (since === undefined || since === "unknown") return since;
  const ms = nowMs - Date.parse(since);
  return ms >= ATTENTION_MS && ms < CALLED_MS ? since : undefined;
}

function logSidecarSet(log: Log, report: SidecarSetReport, attention: string | undefined): void {
  const { name, stop, ...rest } = report;
  const problems = [...rest.tally.problems, ...(rest.summary?.problems ?? [])];
  // Alarms count the lines that tell of missed pods and of trouble, whatever the level of the log.
  const isTrouble = rest.state !== undefined && natureOf(rest.state).isTrouble === true;
  const isGrave =
    attention !== undefined || isGraveStop(stop) || problems.length > 0 || (rest.missed?.count ?? 0) > 0 || isTrouble;
  log[isGrave ? "warn" : "info"](`SidecarSet ${name}`, { stop, ...rest, attentionSince: attention });
}

/** `cluster`: of several; `nowMs`: epoch milliseconds */
export function logReport(log: Log, report: PassReport, cluster?: string, nowMs = Date.now()): void {
  const { sidecarSets, problems, ...pass } = report;
  for (const one of sidecarSets) logSidecarSet(log, one, attentionSince(one, pass.failing?.[one.name], nowMs));
  for (const problem of problems) log.error(problem);
  // An alarm counts the lines that name some.
  log[pass.unread.length > 0 ? "warn" : "info"]("pass", pass);
  if (report.isDryRun || !readEmbedsMetrics()) return;
  // Whatever the level of the log: these lines are not for people.
  const of = { stage: readStage(), cluster };
  for (const fields of embeddedMetrics(report, nowMs, of)) createLog("info").info("metrics", fields);
}
