/** What an operator should look at. Each metric of an alarm costs money, so there are few. */
import {
  answersOfDoor,
  failuresOf,
  type Metric,
  ofClusterLogs,
  ofFunction,
  ofLogs,
  POD_WEBHOOK,
  SIDECARSET_WEBHOOKS,
} from "./alarm-metrics.ts";
import { eachAlone } from "./clusters.ts";
import { clusterId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

interface Alarm {
  readonly description: string;
  readonly metrics: readonly Metric[];
  /** default: Sum; of five minutes, to be 0 */
  readonly statistic?: "Sum" | "Maximum";
  /** alarm when there were none, rather than when there were any */
  readonly isAboutNone?: boolean;
  /** in two of three times five minutes: neither one odd request nor what passes by itself; absent: once is enough */
  readonly isLasting?: true;
  /** alarm when there is more than that; absent: 0 */
  readonly above?: number;
}

const PERIOD_SECONDS = 300;

/** Metrics that alarms watch, which is what CloudWatch charges for. */
export function countAlarmMetrics(settings: AwsSettings): number {
  return Object.values(wanted(settings)).reduce((sum, { metrics }) => sum + metrics.length, 0);
}

/** At the first error of whichever version. Others last for longer than a shift, or stay on for other reasons. */
const STOPPING = ["PodErrors", "PodThrottles", "SidecarSetErrors", "DoorErrors", "TickErrors"];

/** Ids of the alarms that end a shift of requests to new versions. */
export function stoppingAlarms(settings: AwsSettings): readonly string[] {
  const all = wanted(settings);
  return STOPPING.filter((id) => id in all);
}

export function alarms(settings: AwsSettings): Readonly<Record<string, object>> {
  const { alarmTopic } = settings;
  const entries = Object.entries(wanted(settings)).map(([id, alarm]) => {
    const { description, isAboutNone = false, isLasting = false, above = 0 } = alarm;
    const properties = {
      AlarmDescription: description,
      ...metricsOf(alarm),
      ComparisonOperator: isAboutNone ? "LessThanThreshold" : "GreaterThanThreshold",
      Threshold: isAboutNone ? 1 : above,
      ...(isLasting ? { EvaluationPeriods: 3, DatapointsToAlarm: 2 } : { EvaluationPeriods: 1 }),
      TreatMissingData: isAboutNone ? "breaching" : "notBreaching",
      ...(alarmTopic === undefined ? {} : { AlarmActions: [alarmTopic], OKActions: [alarmTopic] }),
    };
    return [id, { Type: "AWS::CloudWatch::Alarm", Properties: properties }] as const;
  });
  return Object.fromEntries(entries);
}

function wanted(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const all = { ...ofWebhooks(settings), ...ofPasses(settings), ...(settings.hasMoreAlarms ? more(settings) : {}) };
  const ofClusters = [...(settings.clusters?.keys() ?? [])].flatMap((name) => ofCluster(name, all, settings));
  return { ...all, ...Object.fromEntries(ofClusters) };
}

/** Alarms that each cluster has too, by the metric of the lines that name it. */
const OF_CLUSTER = {
  PodErrors: "PodErrors",
  PodsMissed: "MissedPods",
  NeedsAttention: "Attention",
  TickErrors: "TickErrors",
} as const;

/** Beside those of the whole deployment, which one cluster that is down for long sets off for as long. */
function ofCluster(name: string, all: Readonly<Record<string, Alarm>>, settings: AwsSettings) {
  return Object.entries(OF_CLUSTER).flatMap(([id, metric]): readonly (readonly [string, Alarm])[] => {
    const [alarm, metrics] = [all[id], [ofClusterLogs(metric, name, settings)]];
    const description = `cluster ${name}: ${alarm?.description}`;
    return alarm === undefined ? [] : [[`${id}Of${clusterId(name)}`, { ...alarm, description, metrics }]];
  });
}

function ofWebhooks(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const throughDoor = settings.door.kind === "function-urls" ? undefined : answersOfDoor("5xx", settings);
  return {
    PodErrors: {
      description:
        "mutate-pod failed, or answered with an error: pods were created without their sidecars, or not at all",
      metrics: [failuresOf(POD_WEBHOOK, settings), ofLogs("PodErrors", settings)],
    },
    PodThrottles: {
      description: "mutate-pod was throttled: the account's concurrency, or what is reserved for it, is used up",
      metrics: [ofFunction("Throttles", POD_WEBHOOK, settings)],
    },
    SidecarSetErrors: {
      description:
        "a webhook of SidecarSets failed, or answered with an error: they cannot be read in another version, or not be changed",
      metrics: [
        ofLogs("SidecarSetErrors", settings),
        ...(settings.hasMoreAlarms ? SIDECARSET_WEBHOOKS.map((name) => failuresOf(name, settings)) : []),
      ],
    },
    ...(throughDoor === undefined
      ? {}
      : {
          DoorErrors: {
            description: "what is in front of the webhooks answered with an error that is none of theirs, or that is",
            metrics: [throughDoor],
          },
        }),
  };
}

function ofPasses(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const ticking = settings.isServingStatefulSets ? ["rollout", "ordered-set"] : ["rollout"];
  return {
    PodsMissed: {
      description:
        "pods were created without their sidecars: the webhook was down, or their review was larger than what gets through to it",
      metrics: [ofLogs("MissedPods", settings)],
      statistic: "Maximum",
    },
    NeedsAttention: {
      description:
        "for ten minutes a SidecarSet has needed attention (sidecarset status names it first, and says why), or passes have been too short to read its pods (the log of rollout names it), or webhooks have refused callers: another secret is registered than they were deployed with, or strangers try",
      metrics: [ofLogs("Attention", settings)],
      isLasting: true,
    },
    ...(eachAlone(settings).every(({ clusterToken }) => clusterToken === undefined)
      ? {}
      : {
          TokenEnds: {
            description: "a token by which a cluster is called expires soon: renew it (docs/deploy-by-hand.md)",
            metrics: [ofLogs("EndingTokens", settings)],
          },
        }),
    TickErrors: {
      description: "a tick failed: the cluster could not be reached, or time ran out",
      metrics: ticking.map((name) => ofFunction("Errors", name, settings)),
    },
    NoTicks: noTicksOf("rollout", "no tick ran for five minutes: nothing is rolled out", settings),
    UndeliveredTicksWaiting: waitingIn(
      "UndeliveredTicks",
      "the Scheduler could not deliver ticks: look at the messages in the queue",
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

/** Four fifths of the time that API servers wait for the pod webhook. */
const SLOW_MS = 4_000;

/** What is worth its price where a minute of an outage costs more. */
function more(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const turnedAway = answersOfDoor("4xx", settings);
  const latency = settings.door.kind === "function-urls" ? "UrlRequestLatency" : "Duration";
  return {
    PodsSlow: {
      description: `mutate-pod took longer than ${SLOW_MS / 1_000} of the 5 seconds that API servers wait for it, for ten minutes`,
      metrics: [ofFunction(latency, POD_WEBHOOK, settings)],
      statistic: "Maximum",
      above: SLOW_MS,
      isLasting: true,
    },
    ...(turnedAway === undefined
      ? {}
      : {
          TurnedAway: {
            description:
              "for ten minutes requests have been turned away before a webhook decided (4xx): throttled, too large, not permitted, or refused by the webhook as a stranger's",
            metrics: [turnedAway],
            isLasting: true,
          },
        }),
    SidecarSetThrottles: {
      description: "a webhook of SidecarSets was throttled: the account's concurrency, or what is reserved, is used up",
      metrics: SIDECARSET_WEBHOOKS.map((name) => ofFunction("Throttles", name, settings)),
    },
    ...(settings.isServingStatefulSets
      ? {
          NoOrderedTicks: noTicksOf(
            "ordered-set",
            "no tick of ordered sets ran for five minutes: they are not reconciled",
            settings,
          ),
        }
      : {}),
  };
}

function noTicksOf(name: string, description: string, settings: AwsSettings): Alarm {
  return { description, metrics: [ofFunction("Invocations", name, settings)], isAboutNone: true };
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
