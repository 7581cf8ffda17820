/**
 * Lambda that makes a pass over all SidecarSets, by schedule or by hand: {"sidecarSet"?: "name", "dryRun"?: true}. If
 * there is a queue, the scheduled pass puts SidecarSets into it, and each message starts a pass for one of them. With
 * several clusters {"cluster": "name"} and each message name one; without it each cluster gets a pass.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Context, SQSEvent } from "aws-lambda";
import { batchGates } from "../../shared/approval/batch-gates.ts";
import type { Queue } from "../../shared/aws/access.ts";
import { logWith } from "../../shared/cluster-log.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import {
  gravesOf,
  isGraveStop,
  type PassReport,
  type SidecarSetReport,
} from "../../shared/controller/rollout/report.ts";
import { failureOf, listWork, serveWork } from "../../shared/controller/serve-work.ts";
import { natureOf } from "../../shared/core/rollout/conditions/verdict.ts";
import { parseWork, subjectOfWork } from "../../shared/core/rollout/queue/work.ts";
import { connect } from "../../shared/kube/connect.ts";
import { type Cluster, readOnlyCluster, SIDECARSETS, storedMeta } from "../../shared/kube/port.ts";
import { createLog, type Log } from "../../shared/log.ts";
import { embeddedMetrics } from "../../shared/metrics/catalogue.ts";
import {
  hasClusters,
  readAwsAccess,
  readCallLimits,
  readCluster,
  readConfig,
  readEmbedsMetrics,
  readQueue,
  readStage,
} from "../../shared/settings/config.ts";
import { keepHeapSmall } from "./heap.ts";
import type { DryRunEvent, RolloutEvent, Site } from "./rollout-clusters.ts";

keepHeapSmall();

export type RolloutContext = Pick<Context, "getRemainingTimeInMillis"> & Partial<Pick<Context, "awsRequestId">>;

/** Time left for the report after the pass. */
const REPORT_MS = 1_000;

const own: Pick<Site, "served" | "refusals"> = { served: new Map(), refusals: new Map() };

/**
 * Makes the pass; several messages return the last report. Trouble of a pass is in the report and the log.
 * @throws KubeError or ConfigError without a connection, and Error if SidecarSets cannot be listed, or a message's pass
 * failed; the queue repeats it
 */
export async function handler(event: RolloutEvent, context: RolloutContext): Promise<PassReport>;
export async function handler(event: SQSEvent, context: RolloutContext): Promise<PassReport | undefined>;
export async function handler(event: RolloutEvent | SQSEvent, context: RolloutContext) {
  return serve(event, context, {});
}

/** Makes a dry run, which cannot write to the cluster. It rejects as `handler` does. */
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
  const probed = probeWebhook(cluster, event, log);
  const queue = sidecarSet === undefined && !dryRun ? readQueue(env) : undefined;
  // The other work is done first, even if the queue fails.
  const failure = queue && (await fillQueue(cluster, queue, { event, site }).catch((error: unknown) => ({ error })));
  const report = await runPass(cluster, {
    ...pass,
    deadlineMs: remainingMs(),
    withoutSidecarSets: queue !== undefined,
    ...(sidecarSet === undefined ? {} : { sidecarSet }),
    dryRun,
    ...(readyAfterSeconds === undefined ? {} : { plan: { readyAfterSeconds } }),
  });
  await probed;
  logReport(log, report, name);
  // Alarms watch failed invocations, and nothing repeats the call.
  if (failure) throw failure.error;
  if (report.failure !== undefined && !dryRun) throw new Error(report.failure);
  return report;
}

async function toCluster({ env, isReadOnly }: Site): Promise<Cluster> {
  const cluster = await connect(readCluster(env), readAwsAccess, undefined, readCallLimits(env));
  return isReadOnly ? readOnlyCluster(cluster) : cluster;
}

/** More than the 5 s after which API servers give a webhook up. Without an answer by then the API server is in trouble. */
const PROBE_MS = 6_000;
/** kube-apiserver's words about this webhook without a usable answer. A 401 has an alarm of its own. */
const UNREACHED = /failed calling webhook "vsidecarset\.kb\.io"(?!.*asked for the client to provide credentials)/;

/**
 * Tries a change of a status without storing it, for which the API server has to call the webhook of SidecarSets. If
 * it cannot, it probably cannot ask about pods either, and no webhook knows that. An alarm counts the lines with
 * `unreached`. Never rejects. Without a status of the first SidecarSet it shows nothing.
 */
export async function probeWebhook(cluster: Cluster, { sidecarSet, dryRun }: RolloutEvent, log: Log): Promise<void> {
  if (sidecarSet !== undefined || dryRun) return;
  const failure = await Promise.race([
    tryStatus(cluster).catch((error: Error) => error),
    sleep(PROBE_MS, undefined, { ref: false }),
  ]);
  if (failure && UNREACHED.test(failure.message))
    log.warn("the API server cannot call the webhook of SidecarSets", { unreached: failure.message });
}

async function tryStatus(cluster: Cluster): Promise<void> {
  const { items } = await cluster.list(SIDECARSETS, { limit: 1 });
  if (items[0] === undefined) return;
  // The registration names changes of this field, because pods get another revision after them.
  const body = { status: { latestRevision: "probe" } };
  const options = { subresource: "status", dryRun: true, answer: "metadata" } as const;
  await cluster.patch(SIDECARSETS, { name: storedMeta(items[0]).name }, { type: "merge", body }, options);
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

/** Serves messages in order, although the queue delivers one at a time. */
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

// Lines of Lambda's log about a pass.

/** Milliseconds of trouble before an alarm calls somebody, and milliseconds after which the alarm ends. */
const [ATTENTION_MS, CALLED_MS] = [600_000, 1_200_000];

/**
 * The start of trouble that rings an alarm: it counts lines with this field, for ten minutes, so that the next
 * SidecarSet can ring. `failing`: since when passes fail.
 */
function attentionSince(
  { state, troubleSince }: SidecarSetReport,
  failing: string | undefined,
  nowMs: number,
): string | undefined {
  const isTrouble = state !== undefined && natureOf(state).isTrouble === true;
  // OpenKruise's definition has no field for this time, so the alarm lasts as long as the trouble.
  const since = failing ?? (isTrouble ? (troubleSince ?? "unknown") : undefined);
  if (since === undefined || since === "unknown") return since;
  const ms = nowMs - Date.parse(since);
  return ms >= ATTENTION_MS && ms < CALLED_MS ? since : undefined;
}

function logSidecarSet(log: Log, report: SidecarSetReport, attention: string | undefined): void {
  const { name, stop, ...rest } = report;
  const problems = [...rest.tally.problems, ...(rest.summary?.problems ?? [])];
  // Alarms count these lines about missed pods and trouble, so every log level prints them.
  const isTrouble = rest.state !== undefined && natureOf(rest.state).isTrouble === true;
  const isGrave =
    attention !== undefined || isGraveStop(stop) || problems.length > 0 || (rest.missed?.count ?? 0) > 0 || isTrouble;
  log[isGrave ? "warn" : "info"](`SidecarSet ${name}`, { stop, ...rest, attentionSince: attention });
}

/** True for reports of passes without pods that start in order. */
function isQuiet(launches: PassReport["launches"]): boolean {
  return launches === undefined || Object.values(launches).every((count) => count === 0 || count.length === 0);
}

/** Logs a report. `cluster`: name of one of several clusters; `nowMs`: epoch milliseconds */
export function logReport(log: Log, report: PassReport, cluster?: string, nowMs = Date.now()): void {
  const { sidecarSets, problems, launches, ...others } = report;
  // Every tick logs this line, and CloudWatch bills each byte, so empty fields are left out.
  const pass = { ...others, ...(isQuiet(launches) ? {} : { launches }) };
  for (const one of sidecarSets) logSidecarSet(log, one, attentionSince(one, pass.failing?.[one.name], nowMs));
  // An alarm counts lines of level error as passes that failed.
  const graves = new Set(gravesOf(report));
  for (const problem of problems) log[graves.has(problem) ? "error" : "warn"](problem);
  // An alarm counts the lines that name objects which could not be read.
  log[pass.unread.length > 0 ? "warn" : "info"]("pass", pass);
  if (report.isDryRun || !readEmbedsMetrics()) return;
  // Metrics read these lines, so every log level prints them.
  const of = { stage: readStage(), cluster };
  for (const fields of embeddedMetrics(report, nowMs, of)) createLog("info").info("metrics", fields);
}
