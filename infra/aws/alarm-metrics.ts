/** The metrics behind alarms: AWS' own, and the ones that AWS makes of the logs. */
import { functionName } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

export interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
}

/** The dimension of metrics that are of one of several clusters. */
export const CLUSTER = "Cluster";
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

/** The same of those lines alone that name this cluster. */
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
