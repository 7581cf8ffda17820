/** Lambda: one pass over all SidecarSets, by schedule or by hand with {"sidecarSet"?: "name", "dryRun"?: true}. */
import type { Context } from "aws-lambda";
import { readCluster, readConfig } from "../shared/config.ts";
import { runPass } from "../shared/controller/pass.ts";
import type { PassReport } from "../shared/controller/report.ts";
import { connect } from "../shared/kube/connect.ts";
import { createLog, type Log } from "../shared/log.ts";

/** An EventBridge event has neither field. */
export interface RolloutEvent {
  readonly sidecarSet?: string;
  readonly dryRun?: boolean;
}

/** Left for the report when the pass is over. */
const REPORT_MS = 1_000;

/** @throws KubeError or ConfigError when there is no way to the cluster; trouble there is in the report, and logged */
export async function handler(event: RolloutEvent, context: Pick<Context, "getRemainingTimeInMillis">) {
  const { kruiseNamespace, logLevel, featureGates } = readConfig();
  const report = await runPass(await connect(readCluster()), {
    kruiseNamespace,
    deadlineMs: context.getRemainingTimeInMillis() - REPORT_MS,
    follow: true,
    isEndingJobs: featureGates.SidecarTerminator,
    ...(event.sidecarSet === undefined ? {} : { sidecarSet: event.sidecarSet }),
    dryRun: event.dryRun === true,
  });
  logReport(createLog(logLevel), report);
  return report;
}

function logReport(log: Log, { sidecarSets, problems, ...pass }: PassReport): void {
  for (const { name, stop, ...rest } of sidecarSets) {
    const problems = [...rest.tally.problems, ...(rest.summary?.problems ?? [])];
    const level = stop === "failed" || problems.length > 0 ? "warn" : "info";
    log[level](`SidecarSet ${name}`, { stop, ...rest });
  }
  for (const problem of problems) log.error(problem);
  log.info("pass", pass);
}
