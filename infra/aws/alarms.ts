/** What an operator should look at. Each metric of an alarm costs money, so there are few. */
import { natureOf, ROLLOUT_VERDICTS } from "../../shared/core/rollout/conditions/verdict.ts";
import { functionName, logGroupId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
}

interface Alarm {
  readonly description: string;
  readonly metrics: readonly Metric[];
  /** default: Sum; of five minutes, to be 0 */
  readonly statistic?: "Sum" | "Maximum";
  /** alarm when there were none, rather than when there were any */
  readonly isAboutNone?: boolean;
  /** in two of three times five minutes: neither one odd request nor what passes by itself; absent: once is enough */
  readonly isLasting?: true;
}

const PERIOD_SECONDS = 300;

/** Metrics that alarms watch, which is what CloudWatch charges for. */
export function countAlarmMetrics(settings: AwsSettings): number {
  return Object.values(wanted(settings)).reduce((sum, { metrics }) => sum + metrics.length, 0);
}

export function alarms(settings: AwsSettings): Readonly<Record<string, object>> {
  const { alarmTopic } = settings;
  const entries = Object.entries(wanted(settings)).map(([id, alarm]) => {
    const { description, isAboutNone = false, isLasting = false } = alarm;
    const properties = {
      AlarmDescription: description,
      ...metricsOf(alarm),
      ComparisonOperator: isAboutNone ? "LessThanThreshold" : "GreaterThanThreshold",
      Threshold: isAboutNone ? 1 : 0,
      ...(isLasting ? { EvaluationPeriods: 3, DatapointsToAlarm: 2 } : { EvaluationPeriods: 1 }),
      TreatMissingData: isAboutNone ? "breaching" : "notBreaching",
      ...(alarmTopic === undefined ? {} : { AlarmActions: [alarmTopic], OKActions: [alarmTopic] }),
    };
    return [id, { Type: "AWS::CloudWatch::Alarm", Properties: properties }] as const;
  });
  return Object.fromEntries(entries);
}

/** What logs tell of. There is such a metric, and it costs something, only in hours in which they do. */
export function logFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const ofTokens = settings.clusterToken === undefined ? [] : ["mutate-pod", "rollout"];
  return {
    MissedPodsFilter: missedPodsFilter(settings),
    UnreadFilter: unreadFilter(settings),
    TroubleFilter: troubleFilter(settings),
    ...Object.fromEntries(
      [POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].flatMap((name) => [
        [`${logGroupId(name)}ErrorFilter`, errorFilter(name, settings)],
        [`${logGroupId(name)}RefusedFilter`, refusedFilter(name, settings)],
      ]),
    ),
    ...Object.fromEntries(ofTokens.map((name) => [`${logGroupId(name)}TokenFilter`, tokenFilter(name, settings)])),
  };
}

const POD_WEBHOOK = "mutate-pod";
const SIDECARSET_WEBHOOKS = ["mutate-sidecarset", "validate-sidecarset", "convert-sidecarset"];

/**
 * A webhook that answers 5xx has not failed for Lambda, and doors count in metrics of their own; each logs it. The
 * runtime writes ERROR for what ends a function.
 */
function errorFilter(name: string, settings: AwsSettings) {
  const { Namespace: MetricNamespace, MetricName } = loggedErrors(name, settings);
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId(name) },
      FilterPattern: '{ ($.level = "error") || ($.level = "ERROR") }',
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue: "1" }],
    },
  };
}

/** A registration with another secret than the function's is an outage; a stranger who tries once is none. */
function refusedFilter(name: string, settings: AwsSettings) {
  const { Namespace: MetricNamespace, MetricName } = attention(settings);
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId(name) },
      FilterPattern: "{ $.code = 401 }",
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue: "1" }],
    },
  };
}

function loggedErrors(name: string, settings: AwsSettings): Metric {
  const MetricName = name === POD_WEBHOOK ? "PodErrors" : "SidecarSetErrors";
  return { Namespace: functionName("logs", settings), MetricName, Dimensions: [] };
}

/** The webhooks' token, or that of passes. */
function tokenFilter(name: string, settings: AwsSettings) {
  const { Namespace: MetricNamespace, MetricName } = endingTokens(settings);
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId(name) },
      FilterPattern: '{ $.accessEndsAt = "*" }',
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue: "1" }],
    },
  };
}

function endingTokens(settings: AwsSettings): Metric {
  return { Namespace: functionName("logs", settings), MetricName: "EndingTokens", Dimensions: [] };
}

export function missedPodsFilter(settings: AwsSettings) {
  const { Namespace: MetricNamespace, MetricName } = missedPods(settings);
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId("rollout") },
      FilterPattern: "{ $.missed.count > 0 }",
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue: "$.missed.count" }],
    },
  };
}

function unreadFilter(settings: AwsSettings) {
  const { Namespace: MetricNamespace, MetricName } = attention(settings);
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId("rollout") },
      FilterPattern: '{ $.unread[0] = "*" }',
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue: "1" }],
    },
  };
}

/** A line a minute for each SidecarSet that needs attention. */
function troubleFilter(settings: AwsSettings) {
  const { Namespace: MetricNamespace, MetricName } = attention(settings);
  const states = ROLLOUT_VERDICTS.filter((verdict) => natureOf(verdict).isTrouble);
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId("rollout") },
      FilterPattern: `{ ${states.map((state) => `($.state = "${state}")`).join(" || ")} }`,
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue: "1" }],
    },
  };
}

function attention(settings: AwsSettings): Metric {
  return { Namespace: functionName("logs", settings), MetricName: "Attention", Dimensions: [] };
}

function missedPods(settings: AwsSettings): Metric {
  return { Namespace: functionName("logs", settings), MetricName: "MissedPods", Dimensions: [] };
}

function wanted(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const ofFunction = (MetricName: string, name: string): Metric => ({
    Namespace: "AWS/Lambda",
    MetricName,
    Dimensions: [{ Name: "FunctionName", Value: functionName(name, settings) }],
  });
  const ticking = settings.isServingOrderedSets ? ["rollout", "ordered-set"] : ["rollout"];
  return {
    PodErrors: {
      description:
        "mutate-pod failed, or answered with an error: pods were created without their sidecars, or not at all",
      metrics: [ofFunction("Errors", POD_WEBHOOK), loggedErrors(POD_WEBHOOK, settings)],
    },
    PodThrottles: {
      description: "mutate-pod was throttled: the account's concurrency, or what is reserved for it, is used up",
      metrics: [ofFunction("Throttles", POD_WEBHOOK)],
    },
    SidecarSetErrors: {
      description:
        "a webhook of SidecarSets failed, or answered with an error: they cannot be read in another version, or not be changed",
      metrics: [loggedErrors("validate-sidecarset", settings)],
    },
    PodsMissed: {
      description:
        "pods were created without their sidecars: the webhook was down, or their review was larger than what gets through to it",
      metrics: [missedPods(settings)],
      statistic: "Maximum",
    },
    NeedsAttention: {
      description:
        "for ten minutes a SidecarSet has needed attention (sidecarset status names it first, and says why), or passes have been too short to read its pods (the log of rollout names it), or webhooks have refused callers: another secret is registered than they were deployed with, or strangers try",
      metrics: [attention(settings)],
      isLasting: true,
    },
    ...(settings.clusterToken === undefined
      ? {}
      : {
          TokenEnds: {
            description: "a token by which the cluster is called is soon over: renew it (docs/deploy.md)",
            metrics: [endingTokens(settings)],
          },
        }),
    TickErrors: {
      description: "a tick failed: the cluster could not be reached, or time ran out",
      metrics: ticking.map((name) => ofFunction("Errors", name)),
    },
    NoTicks: {
      description: "no tick ran for five minutes: nothing is rolled out",
      metrics: [ofFunction("Invocations", "rollout")],
      isAboutNone: true,
    },
    UndeliveredTicksWaiting: waitingIn(
      "UndeliveredTicks",
      "the Scheduler could not hand ticks over: look at the messages in the queue",
    ),
    ...(settings.rolloutWorkers === undefined
      ? {}
      : {
          FailedWorkWaiting: waitingIn(
            "FailedWork",
            "SidecarSets failed five times: the messages in the queue name them, the log of rollout says why",
          ),
        }),
  };
}

function waitingIn(queueId: string, description: string): Alarm {
  const metric = {
    Namespace: "AWS/SQS",
    MetricName: "ApproximateNumberOfMessagesVisible",
    Dimensions: [{ Name: "QueueName", Value: { "Fn::GetAtt": [queueId, "QueueName"] } }],
  };
  return { description, metrics: [metric], statistic: "Maximum" };
}

function metricsOf({ metrics, statistic = "Sum" }: Alarm): object {
  const [only] = metrics;
  if (metrics.length === 1) return { ...only, Statistic: statistic, Period: PERIOD_SECONDS };
  const terms = metrics.map((Metric, index) => ({
    Id: `m${index}`,
    MetricStat: { Metric, Stat: statistic, Period: PERIOD_SECONDS },
    ReturnData: false,
  }));
  return { Metrics: [...terms, { Id: "sum", Expression: `FILL(${terms.map(({ Id }) => Id).join(", 0)+FILL(")}, 0)` }] };
}
