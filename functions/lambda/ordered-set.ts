/**
 * Lambda that makes a pass over all Advanced StatefulSets, by schedule or by hand: {"set"?: "NAMESPACE/NAME",
 * "dryRun"?: true}. With several clusters {"cluster": "name"} names one; without it each cluster gets a pass.
 */
import type { Context } from "aws-lambda";
import { logWith } from "../../shared/cluster-log.ts";
import { parseSetKey } from "../../shared/controller/statefulset/observe.ts";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import type { SetPassReport } from "../../shared/controller/statefulset/report.ts";
import { connect } from "../../shared/kube/connect.ts";
import { createLog, type Log } from "../../shared/log.ts";
import {
  type Environment,
  hasClusters,
  readAwsAccess,
  readCallLimits,
  readCluster,
  readConfig,
} from "../../shared/settings/config.ts";
import { logSets } from "../server/tick.ts";

interface StatefulSetEvent {
  /** name of one of several clusters; absent: all of them */
  readonly cluster?: string;
  readonly set?: string;
  readonly dryRun?: boolean;
  /** for a dry run of one set: seconds until its pods are ready again; absent: 5 */
  readonly readyAfterSeconds?: number;
}

type SetContext = Pick<Context, "getRemainingTimeInMillis"> & Partial<Pick<Context, "awsRequestId">>;

/** Time left for the report after the pass. */
const REPORT_MS = 1_000;

/** Makes the pass, and reports its trouble. @throws KubeError or ConfigError if the cluster cannot be reached at all */
export async function handler(event: StatefulSetEvent, context: SetContext): Promise<SetPassReport>;
export async function handler(event: StatefulSetEvent, context: SetContext): Promise<object> {
  if (!hasClusters()) return serveSets(event, context, { log: createLog(readConfig().logLevel) });
  const { eachCluster, newSites, oneCluster } = await import("./each-cluster.ts");
  const sites = newSites(() => ({}));
  const { cluster, ...rest } = event;
  if (cluster !== undefined) return oneCluster(sites, cluster, (site) => serveSets(rest, context, site));
  if (event.set !== undefined)
    throw new Error(`${event.set} may be in several clusters: say in which, {"cluster": "NAME"}`);
  return eachCluster(sites, (site) => serveSets(rest, context, site));
}

interface SetSite {
  /** environment; absent: the process's own */
  readonly env?: Environment;
  readonly log: Log;
}

async function serveSets(
  { set, dryRun = false, readyAfterSeconds }: StatefulSetEvent,
  context: SetContext,
  { env, log }: SetSite,
): Promise<SetPassReport> {
  const { kruiseNamespace, featureGates: gates } = readConfig(env);
  const cluster = await connect(readCluster(env), readAwsAccess, undefined, readCallLimits(env));
  const report = await runSetPass(cluster, {
    kruiseNamespace,
    gates,
    deadlineMs: context.getRemainingTimeInMillis() - REPORT_MS,
    follow: true,
    dryRun,
    ...(set === undefined ? {} : { set: parseSetKey(set) }),
    ...(readyAfterSeconds === undefined ? {} : { plan: { readyAfterSeconds } }),
  });
  logSets(logWith(log, { requestId: context.awsRequestId }), report);
  return report;
}
