/**
 * Lambda: a pass over all SidecarSets, by schedule or by hand with {"sidecarSet"?: "name", "dryRun"?: true}. Where there
 * is a queue the schedule's pass puts SidecarSets into it, and each message that comes back is a pass for one of them.
 * Where there are several clusters, {"cluster": "name"} and each message say of which; without it all have their pass.
 */
import type { Context, SQSEvent } from "aws-lambda";
import { batchGates } from "../../shared/approval/batch-gates.ts";
import type { Queue } from "../../shared/aws/access.ts";
import { logWith } from "../../shared/cluster-log.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { failureOf, listWork, serveWork } from "../../shared/controller/serve-work.ts";
import { parseWork, subjectOfWork } from "../../shared/core/rollout/queue/work.ts";
import { connect } from "../../shared/kube/connect.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { readOnlyCluster } from "../../shared/kube/read-only.ts";
import { createLog } from "../../shared/log.ts";
import {
  hasClusters,
  readAwsAccess,
  readCallLimits,
  readCluster,
  readConfig,
  readQueue,
} from "../../shared/settings/config.ts";
import { keepHeapSmall } from "./heap.ts";
import { logReport } from "./rollout-log.ts";
import type { DryRunEvent, RolloutEvent, Site } from "./rollout-site.ts";

keepHeapSmall();

export type RolloutContext = Pick<Context, "getRemainingTimeInMillis"> & Partial<Pick<Context, "awsRequestId">>;

/** Left for the report when the pass is over. */
const REPORT_MS = 1_000;

const own: Pick<Site, "served" | "refusals"> = { served: new Map(), refusals: new Map() };

/**
 * Messages give the report of the last of them.
 * @throws KubeError or ConfigError when there is no way to the cluster, and an Error when SidecarSets cannot be listed;
 * other trouble there is in the report, and logged. For a message also when its pass failed: it comes again.
 */
export async function handler(event: RolloutEvent, context: RolloutContext): Promise<PassReport>;
export async function handler(event: SQSEvent, context: RolloutContext): Promise<PassReport | undefined>;
export async function handler(event: RolloutEvent | SQSEvent, context: RolloutContext) {
  return serve(event, context, {});
}

/** A dry run, which cannot write to the cluster. Rejects as `handler` does. */
export async function serveDryRun(event: DryRunEvent, context: RolloutContext): Promise<PassReport> {
  return serve({ ...event, dryRun: true }, context, { isReadOnly: true }) as Promise<PassReport>;
}

async function serve(event: RolloutEvent | SQSEvent, context: RolloutContext, of: Pick<Site, "isReadOnly">) {
  const named = { requestId: context.awsRequestId };
  if (!hasClusters())
    return serveEvent(event, context, { ...own, ...of, log: logWith(createLog(readConfig().logLevel), named) });
  const { serveClusters } = await import("./rollout-clusters.ts");
  return serveClusters(event, of.isReadOnly ? "dry runs" : "passes", (one, site) =>
    serveEvent(one, context, { ...site, ...of, log: logWith(site.log, named) }),
  );
}

async function serveEvent(event: RolloutEvent | SQSEvent, context: RolloutContext, site: Site) {
  const { env, log, name, refusals } = site;
  const { kruiseNamespace, featureGates, isKeepingRegistration } = readConfig(env);
  const pass = {
    kruiseNamespace,
    follow: true,
    settings: featureGates,
    isKeepingRegistration,
    gates: batchGates(log, { refusals, env }),
    ...(site.memory ? { memory: site.memory } : {}),
  };
  const remainingMs = () => context.getRemainingTimeInMillis() - REPORT_MS;
  if ("Records" in event) return serveMessages(event, { ...pass, remainingMs, site });
  const { sidecarSet, dryRun = false, readyAfterSeconds } = event;
  const cluster = await toCluster(site);
  const queue = sidecarSet === undefined && !dryRun ? readQueue(env) : undefined;
  // All else there is to do has its turn whatever becomes of the queue.
  const failure = queue && (await fillQueue(cluster, queue, { event, site }).catch((error: unknown) => ({ error })));
  const report = await runPass(cluster, {
    ...pass,
    deadlineMs: remainingMs(),
    withoutSidecarSets: queue !== undefined,
    ...(sidecarSet === undefined ? {} : { sidecarSet }),
    dryRun,
    ...(readyAfterSeconds === undefined ? {} : { plan: { readyAfterSeconds } }),
  });
  logReport(log, report, name);
  // An invocation that fails is what alarms look at; nobody repeats it.
  if (failure) throw failure.error;
  if (report.failure !== undefined && !dryRun) throw new Error(report.failure);
  return report;
}

async function toCluster({ env, isReadOnly }: Site): Promise<Cluster> {
  const cluster = await connect(readCluster(env), readAwsAccess, undefined, readCallLimits(env));
  return isReadOnly ? readOnlyCluster(cluster) : cluster;
}

async function fillQueue(
  cluster: Cluster,
  queue: Queue,
  { event: { scheduledTime = "" }, site }: { readonly event: RolloutEvent; readonly site: Site },
): Promise<undefined> {
  const work = await listWork(cluster, Date.parse(scheduledTime) || Date.now());
  const { sendWork } = await import("../../shared/aws/send-work.ts");
  await sendWork(queue, work, readAwsAccess(), site.name);
  site.log.info("queued", { sidecarSets: work.length });
  return undefined;
}

type MessageOptions = Omit<PassOptions, "deadlineMs" | "sidecarSet"> & {
  readonly remainingMs: () => number;
  readonly site: Site;
};

/** One after the other, though the queue hands them over one by one. */
async function serveMessages({ Records }: SQSEvent, { site, ...options }: MessageOptions) {
  const { log, served, name } = site;
  let last: PassReport | undefined;
  for (const { body } of Records) {
    const work = parseWork(body);
    const report = await serveWork(await toCluster(site), work, { ...options, served });
    if (report === undefined) {
      log.debug(`${subjectOfWork(work)}: served meanwhile`);
      continue;
    }
    logReport(log, report, name);
    const failure = failureOf(report);
    if (failure !== undefined) throw new Error(`${subjectOfWork(work)}: ${failure}`);
    last = report;
  }
  return last;
}
