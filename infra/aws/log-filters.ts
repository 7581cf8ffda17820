/** Lines of the logs that are counted, so that alarms can look at them. */

import { PASS_FAILED } from "../../shared/cluster-log.ts";
import { GRAVE_STOPS } from "../../shared/controller/rollout/report.ts";
import { STALE_WORDS } from "../../shared/webhook/view/announcements.ts";
import { eachAlone } from "./clusters.ts";
import { tickingFunctions } from "./deployed.ts";
import { functionName, logGroupId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

/**
 * Lines of failures. A webhook that answers 5xx has not failed for Lambda, so it logs the failure. The runtime writes
 * ERROR when a function ends by an error.
 */
const ERRORS = '{ ($.level = "error") || ($.level = "ERROR") }';
/** Refusals at the path of a webhook. Strangers rarely call there, and the product's probes are not counted. */
const REFUSALS = '{ $.refusedPath = "*" }';
/** A decision is stale if one of its first four warnings says so. */
const STALE = `{ ${[0, 1, 2, 3].map((index) => `($.warnings[${index}] = "${STALE_WORDS}*")`).join(" || ")} }`;
/** Functions that answer from older knowledge when they cannot read the cluster. */
const STALE_READERS = ["mutate-pod", "validate-sidecarset"];
/** Passes see that an API server cannot call a webhook, which no webhook can see. */
const UNREACHED = '{ $.unreached = "*" }';
const ENDING = '{ $.accessEndsAt = "*" }';
const UNREAD = '{ $.unread[0] = "*" }';
/**
 * The field appears from the tenth minute of the trouble to the twentieth, so the next SidecarSet in trouble rings
 * again.
 */
const ATTENTION = '{ $.attentionSince = "*" }';

/** Metrics that AWS makes of lines in the logs. */
export function logFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const hasTokens = eachAlone(settings).some(({ clusterToken }) => clusterToken !== undefined);
  const ofTokens = hasTokens ? ["mutate-pod", "rollout"] : [];
  const errors = (name: string) => ofLogs(name === POD_WEBHOOK ? "PodErrors" : "SidecarSetErrors", settings);
  const endingTokens = ofLogs("EndingTokens", settings);
  return {
    MissedPodsFilter: missedPodsFilter(settings),
    AttentionFilter: filter("rollout", ATTENTION, ofLogs("Attention", settings)),
    UnreachedFilter: filter("rollout", UNREACHED, ofLogs("SidecarSetErrors", settings)),
    ...(settings.hasMoreAlarms ? moreFilters(settings) : {}),
    ...Object.fromEntries(
      [POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].flatMap((name) => [
        [`${logGroupId(name)}ErrorFilter`, filter(name, ERRORS, errors(name))],
        [`${logGroupId(name)}RefusedFilter`, filter(name, REFUSALS, ofLogs("RefusedCallers", settings))],
      ]),
    ),
    ...(settings.clusters === undefined ? {} : clusterFilters(settings)),
    // Tokens of webhooks and of passes.
    ...Object.fromEntries(
      ofTokens.map((name) => [`${logGroupId(name)}TokenFilter`, filter(name, ENDING, endingTokens)]),
    ),
  };
}

function moreFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const [stale, problems] = [ofLogs("StaleDecisions", settings), ofLogs("PassProblems", settings)];
  const found = Object.fromEntries(
    STALE_READERS.map((name) => [`${logGroupId(name)}StaleFilter`, filter(name, STALE, stale)] as const),
  );
  return {
    ProblemFilter: filter("rollout", problemPattern(), problems),
    UnreadFilter: filter("rollout", UNREAD, problems),
    ...found,
  };
}

/** Filters for lines that name one of several clusters: a metric for each cluster. */
function clusterFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const ticking = tickingFunctions(settings);
  const of = (id: string, made: ReturnType<typeof filter>) => [`${id}OfClusterFilter`, byCluster(made)] as const;
  return Object.fromEntries([
    of("MissedPods", missedPodsFilter(settings)),
    of("Attention", filter("rollout", ATTENTION, ofLogs("Attention", settings))),
    of("PodErrors", filter(POD_WEBHOOK, ERRORS, ofLogs("PodErrors", settings))),
    ...[POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].map((name) =>
      of(`${logGroupId(name)}Refused`, filter(name, REFUSALS, ofLogs("RefusedCallers", settings))),
    ),
    ...ticking.map((name) =>
      of(`${logGroupId(name)}Failed`, filter(name, `{ $.message = "${PASS_FAILED}" }`, ofLogs("TickErrors", settings))),
    ),
  ]);
}

/** A filter for each cluster: CloudWatch reads a dimension from the fields that the pattern has matched. */
function byCluster({ Type, Properties }: ReturnType<typeof filter>) {
  const FilterPattern = Properties.FilterPattern.replace(/^\{ (.*) \}$/, '{ ($.cluster = "*") && ($1) }');
  const Dimensions = [{ Key: CLUSTER, Value: "$.cluster" }];
  const MetricTransformations = Properties.MetricTransformations.map((one) => ({ ...one, Dimensions }));
  return { Type, Properties: { ...Properties, FilterPattern, MetricTransformations } };
}

export function missedPodsFilter(settings: AwsSettings) {
  return filter("rollout", "{ $.missed.recent > 0 }", ofLogs("MissedPods", settings), "$.missed.recent");
}

/** Passes without a decision or without a write, and other failed reads and writes of passes. */
function problemPattern(): string {
  const terms = ['($.level = "error")', ...GRAVE_STOPS.map((stop) => `($.stop = "${stop}")`)];
  return `{ ${terms.join(" || ")} }`;
}

/** A filter of a function's log. `MetricValue`: the value of each line */
function filter(
  name: string,
  FilterPattern: string,
  { Namespace: MetricNamespace, MetricName }: Metric,
  MetricValue = "1",
) {
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId(name) },
      FilterPattern,
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue }],
    },
  };
}

// The metrics behind alarms: AWS' own, and the ones that AWS makes of the logs.

export interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
}

/** The dimension of metrics that are of one of several clusters. */
const CLUSTER = "Cluster";
export const POD_WEBHOOK = "mutate-pod";
export const SIDECARSET_WEBHOOKS = ["mutate-sidecarset", "validate-sidecarset", "convert-sidecarset"];

/** A metric that Lambda itself writes. */
export function ofFunction(MetricName: string, name: string, settings: AwsSettings): Metric {
  return {
    Namespace: "AWS/Lambda",
    MetricName,
    Dimensions: [{ Name: "FunctionName", Value: functionName(name, settings) }],
  };
}

type Logged =
  | "PodErrors"
  | "SidecarSetErrors"
  | "RefusedCallers"
  | "StaleDecisions"
  | "Attention"
  | "PassProblems"
  | "MissedPods"
  | "EndingTokens"
  | "TickErrors";

/** Made of lines of the logs. There is such a metric, and it costs something, only in hours in which they have any. */
export function ofLogs(MetricName: Logged, settings: AwsSettings): Metric {
  return { Namespace: functionName("logs", settings), MetricName, Dimensions: [] };
}

/** A metric made of the log lines that name this cluster. */
export function ofClusterLogs(MetricName: Logged, cluster: string, settings: AwsSettings): Metric {
  return { ...ofLogs(MetricName, settings), Dimensions: [{ Name: CLUSTER, Value: cluster }] };
}

/** Answers of a webhook that Lambda counts as failed, or that the Function URL in front of it gave: more than a function sees. */
export function failuresOf(name: string, settings: AwsSettings): Metric {
  const isByUrl = settings.door.kind === "function-urls" || name === "convert-sidecarset";
  return ofFunction(isByUrl ? "Url5xxCount" : "Errors", name, settings);
}

/** A metric of a queue. `queueId`: the id of its resource. */
export function ofQueue(MetricName: string, queueId: string): Metric {
  const Value = { "Fn::GetAtt": [queueId, "QueueName"] };
  return { Namespace: "AWS/SQS", MetricName, Dimensions: [{ Name: "QueueName", Value }] };
}

/** Calls that the Scheduler tried by the schedules of a group. */
export function callsOf(groupId: string): Metric {
  const Dimensions = [{ Name: "ScheduleGroup", Value: { Ref: groupId } }];
  return { Namespace: "AWS/Scheduler", MetricName: "InvocationAttemptCount", Dimensions };
}

/** Answers that the door itself counts, by the class of their codes. */
export function answersOfDoor(code: "4xx" | "5xx", settings: AwsSettings): Metric | undefined {
  switch (settings.door.kind) {
    case "http-api":
      return {
        Namespace: "AWS/ApiGateway",
        MetricName: code,
        Dimensions: [{ Name: "ApiId", Value: { Ref: "WebhookApi" } }],
      };
    case "load-balancer":
      return {
        Namespace: "AWS/ApplicationELB",
        MetricName: code === "4xx" ? "HTTPCode_Target_4XX_Count" : "HTTPCode_ELB_5XX_Count",
        Dimensions: [{ Name: "LoadBalancer", Value: { "Fn::GetAtt": ["WebhookBalancer", "LoadBalancerFullName"] } }],
      };
    case "function-urls":
      return code === "4xx" ? ofFunction("Url4xxCount", POD_WEBHOOK, settings) : undefined;
    case "none":
      return undefined;
  }
}
