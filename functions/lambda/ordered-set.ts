/** Lambda: a pass over all ordered sets, by schedule or by hand with {"set"?: "NAMESPACE/NAME", "dryRun"?: true}. */
import type { Context } from "aws-lambda";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import type { SetPassReport } from "../../shared/controller/statefulset/report.ts";
import { connect } from "../../shared/kube/connect.ts";
import { createLog } from "../../shared/log.ts";
import { readCluster, readConfig } from "../../shared/settings/config.ts";
import { parseSetKey } from "../cli/input/statefulset-key.ts";
import { logSets } from "../server/statefulset-log.ts";

interface OrderedSetEvent {
  readonly set?: string;
  readonly dryRun?: boolean;
  /** dry run of one set: how long its pods take until they are ready again; absent: 5 */
  readonly readyAfterSeconds?: number;
}

/** Left for the report when the pass is over. */
const REPORT_MS = 1_000;

/** @throws KubeError or ConfigError when there is no way to the cluster; trouble there is in the report, and logged */
export async function handler(
  { set, dryRun = false, readyAfterSeconds }: OrderedSetEvent,
  context: Pick<Context, "getRemainingTimeInMillis">,
): Promise<SetPassReport> {
  const { kruiseNamespace, logLevel, featureGates: gates } = readConfig();
  const report = await runSetPass(await connect(readCluster()), {
    kruiseNamespace,
    gates,
    deadlineMs: context.getRemainingTimeInMillis() - REPORT_MS,
    follow: true,
    dryRun,
    ...(set === undefined ? {} : { set: parseSetKey(set) }),
    ...(readyAfterSeconds === undefined ? {} : { plan: { readyAfterSeconds } }),
  });
  logSets(createLog(logLevel), report);
  return report;
}
