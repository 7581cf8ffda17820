/**
 * Alarms that wake an operator, and alarms that become a ticket. Every metric of an alarm costs money, so there are
 * few.
 */
import { ConfigError } from "../../shared/settings/config-error.ts";
import { eachAlone } from "./clusters.ts";
import { tickingFunctions } from "./deployed.ts";
import {
  answersOfDoor,
  callsOf,
  failuresOf,
  type Metric,
  ofClusterLogs,
  ofFunction,
  ofLogs,
  ofQueue,
  POD_WEBHOOK,
  SIDECARSET_WEBHOOKS,
} from "./log-filters.ts";
import { clusterId } from "./names.ts";
import { hasScheduleGroups, scheduleGroupId } from "./schedule.ts";
import type { AwsSettings } from "./settings.ts";

interface Alarm {
  /** the event, in one sentence without its full stop */
  readonly says: string;
  /** the reader: somebody at once, or somebody by day */
  readonly tier: "page" | "ticket";
  readonly metrics: readonly Metric[];
  /** default: Sum */
  readonly statistic?: "Sum" | "Maximum";
  /** that many of the last minutes are beyond the threshold */
  readonly minutes: readonly [beyond: number, of: number];
  /** a minute is beyond it with a larger value; absent: 0 */
  readonly above?: number;
  /** a minute is beyond it with none at all, or without data */
  readonly isAboutNone?: true;
  /** the value of a minute is the growth since the minute before */
  readonly isAboutGrowth?: true;
}

/** One odd request, or a fault of less than a minute, rings nothing. A quiet cluster has ten minutes to fail twice. */
const LASTING = [2, 10] as const;
/** One minute is enough. The alarm stays on for five, so that it does not come and go. */
const AT_ONCE = [1, 5] as const;
/** A tick comes each minute, and one that fails is followed by the next. */
const TICKS = [3, 5] as const;
/** CloudWatch may notice a message in an unused queue up to 15 minutes late. */
const GROWTH = { isAboutGrowth: true, statistic: "Maximum", minutes: [1, 15] } as const;

/** The number of metrics that alarms watch, for which CloudWatch charges. */
export function countAlarmMetrics(settings: AwsSettings): number {
  return Object.values(wanted(settings)).reduce((sum, { metrics }) => sum + metrics.length, 0);
}

/**
 * Alarms that can show a fault of either version. The others last longer than a shift, or stay on for other reasons.
 */
const STOPPING = ["PodErrors", "PodThrottles", "CallersRefused", "SidecarSetErrors", "DoorErrors", "TickErrors"];

/** Ids of the alarms that end a shift of requests to new versions. */
export function stoppingAlarms(settings: AwsSettings): readonly string[] {
  const all = wanted(settings);
  return STOPPING.filter((id) => id in all);
}

/** @throws ConfigError for a threshold of an alarm that does not exist, or that has no threshold */
export function alarms(settings: AwsSettings): Readonly<Record<string, object>> {
  const all = wanted(settings);
  const other = [...(settings.alarmAbove?.keys() ?? [])].find(
    (name) => all[name]?.isAboutNone !== undefined || !all[name],
  );
  if (other !== undefined) throw new ConfigError(`--param alarm-above: ${other} is no alarm that has a threshold.`);
  const entries = Object.entries(all).map(
    ([id, alarm]) => [id, { Type: "AWS::CloudWatch::Alarm", Properties: propertiesOf(id, alarm, settings) }] as const,
  );
  return Object.fromEntries([...entries, ...budget(settings)]);
}

function propertiesOf(
  id: string,
  alarm: Alarm,
  { alarmTopic, ticketTopic = alarmTopic, alarmAbove, site }: AwsSettings,
) {
  const { says, tier, minutes, above = 0 } = alarm;
  const [DatapointsToAlarm, EvaluationPeriods] = minutes;
  const topic = tier === "page" ? alarmTopic : ticketTopic;
  const page = site === undefined ? "docs/alarms.md" : `${site}/docs/alarms`;
  return {
    AlarmDescription: `${tier}: ${says}. What to do: ${page}#${id.replace(/Of.*$/, "").toLowerCase()}`,
    ...metricsOf(alarm),
    DatapointsToAlarm,
    EvaluationPeriods,
    ...(alarm.isAboutNone
      ? { ComparisonOperator: "LessThanThreshold", Threshold: 1, TreatMissingData: "breaching" }
      : {
          ComparisonOperator: "GreaterThanThreshold",
          Threshold: alarmAbove?.get(id) ?? above,
          TreatMissingData: "notBreaching",
        }),
    ...(topic === undefined ? {} : { AlarmActions: [topic], OKActions: [topic] }),
  };
}

/**
 * A budget for resources with the stack's name, once that tag is activated for costs. @throws ConfigError without a
 * topic
 */
function budget({ monthlyBudget, alarmTopic, ticketTopic = alarmTopic, ...settings }: AwsSettings) {
  if (monthlyBudget === undefined) return [];
  if (ticketTopic === undefined)
    throw new ConfigError("--param monthly-budget needs --param ticket-topic or alarm-topic.");
  const { service, stage } = settings;
  const Budget = {
    BudgetName: `${service}-${stage}`,
    BudgetType: "COST",
    TimeUnit: "MONTHLY",
    BudgetLimit: { Amount: monthlyBudget, Unit: "USD" },
    CostFilters: { TagKeyValue: [`aws:cloudformation:stack-name$${service}-${stage}`] },
  };
  const NotificationsWithSubscribers = [
    {
      Notification: { NotificationType: "ACTUAL", ComparisonOperator: "GREATER_THAN", Threshold: 100 },
      Subscribers: [{ SubscriptionType: "SNS", Address: ticketTopic }],
    },
  ];
  return [["Budget", { Type: "AWS::Budgets::Budget", Properties: { Budget, NotificationsWithSubscribers } }]] as const;
}

function wanted(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const all = { ...ofWebhooks(settings), ...ofPasses(settings), ...(settings.hasMoreAlarms ? more(settings) : {}) };
  const ofClusters = [...(settings.clusters?.keys() ?? [])].flatMap((name) => ofCluster(name, all, settings));
  return { ...all, ...Object.fromEntries(ofClusters) };
}

/** Alarms that each cluster has too, by the metric of the lines that name it. */
const OF_CLUSTER = {
  PodErrors: "PodErrors",
  CallersRefused: "RefusedCallers",
  PodsMissed: "MissedPods",
  NeedsAttention: "Attention",
  TickErrors: "TickErrors",
} as const;

/** Alarms of one cluster. The deployment has them too, but one cluster that is down for long keeps those on. */
function ofCluster(name: string, all: Readonly<Record<string, Alarm>>, settings: AwsSettings) {
  return Object.entries(OF_CLUSTER).flatMap(([id, metric]): readonly (readonly [string, Alarm])[] => {
    const [alarm, metrics] = [all[id], [ofClusterLogs(metric, name, settings)]];
    return alarm === undefined
      ? []
      : [[`${id}Of${clusterId(name)}`, { ...alarm, says: `cluster ${name}: ${alarm.says}`, metrics }]];
  });
}

function ofWebhooks(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const throughDoor = settings.door.kind === "function-urls" ? undefined : answersOfDoor("5xx", settings);
  return {
    PodErrors: {
      says: "mutate-pod failed, or answered with an error, in two minutes: pods were created without their sidecars, or not at all",
      tier: "page",
      metrics: [failuresOf(POD_WEBHOOK, settings), ofLogs("PodErrors", settings)],
      minutes: LASTING,
    },
    CallersRefused: {
      says: "a webhook refused a caller at its own path (401): most likely API servers are registered with another secret than the functions know, and no pod gets its sidecars",
      tier: "page",
      metrics: [ofLogs("RefusedCallers", settings)],
      minutes: AT_ONCE,
    },
    PodThrottles: {
      says: "mutate-pod was throttled in two minutes: the account's concurrency, or what is reserved for it, is used up",
      tier: "page",
      metrics: [ofFunction("Throttles", POD_WEBHOOK, settings)],
      minutes: LASTING,
    },
    SidecarSetErrors: {
      says: "a webhook of SidecarSets failed, or API servers could not call it, in two minutes: SidecarSets cannot be read in another version, or not be changed; if no function can be called, pods are created without their sidecars, or not at all",
      tier: "page",
      metrics: [
        ofLogs("SidecarSetErrors", settings),
        ...(settings.hasMoreAlarms ? SIDECARSET_WEBHOOKS.map((name) => failuresOf(name, settings)) : []),
      ],
      minutes: LASTING,
    },
    ...(throughDoor === undefined
      ? {}
      : {
          DoorErrors: {
            says: "what is in front of the webhooks answered with an error in two minutes, its own or one of theirs",
            tier: "page",
            metrics: [throughDoor],
            minutes: LASTING,
          },
        }),
  };
}

function ofPasses(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const ticking = tickingFunctions(settings);
  return {
    PodsMissed: {
      says: "pods were created without their sidecars in the last ten minutes: the webhook was down or is not registered, or their review was larger than what gets through to it",
      tier: "page",
      metrics: [ofLogs("MissedPods", settings)],
      statistic: "Maximum",
      minutes: AT_ONCE,
    },
    NeedsAttention: {
      says: "for ten minutes a SidecarSet has needed attention, or its passes have failed or been too short: sidecarset status names it first, and says why",
      tier: "ticket",
      metrics: [ofLogs("Attention", settings)],
      minutes: LASTING,
    },
    ...(eachAlone(settings).every(({ clusterToken }) => clusterToken === undefined)
      ? {}
      : {
          TokenEnds: {
            says: "a token by which a cluster is called expires soon: renew it",
            tier: "ticket",
            metrics: [ofLogs("EndingTokens", settings)],
            minutes: AT_ONCE,
          },
        }),
    TickErrors: {
      says: "three ticks of five failed: the cluster could not be reached, or time ran out",
      tier: "page",
      metrics: ticking.map((name) => ofFunction("Errors", name, settings)),
      minutes: TICKS,
    },
    ...noTicks("rollout", "NoTicks", "nothing is rolled out", settings),
    ...(settings.isServingStatefulSets
      ? noTicks("ordered-set", "NoOrderedTicks", "ordered sets are not reconciled", settings)
      : {}),
    // This alarm watches schedules whose function has other calls too.
    ...(hasScheduleGroups(settings) || settings.hasMoreAlarms ? undeliveredTicks() : {}),
    ...(settings.rolloutWorkers === undefined ? {} : ofQueues()),
  };
}

function undeliveredTicks(): Readonly<Record<string, Alarm>> {
  return {
    UndeliveredTicksWaiting: {
      says: "in three minutes the Scheduler could not deliver ticks, or they failed: the messages in the queue say why",
      tier: "ticket",
      metrics: [ofQueue("ApproximateNumberOfMessagesVisible", "UndeliveredTicks")],
      ...GROWTH,
      minutes: [3, 15],
    },
  };
}

/** An unread message is gone after an hour without a trace, so the alarm comes earlier. */
const LATE_SECONDS = 900;

function ofQueues(): Readonly<Record<string, Alarm>> {
  return {
    FailedWorkWaiting: {
      says: "SidecarSets failed five times: the messages in the queue name them, the log of rollout says why",
      tier: "ticket",
      metrics: [ofQueue("ApproximateNumberOfMessagesVisible", "FailedWork")],
      ...GROWTH,
    },
    WorkWaits: {
      says: `SidecarSets have waited for ${LATE_SECONDS / 60} minutes in the queue, where messages are lost after an hour: there are too few workers, or they do not run`,
      tier: "page",
      metrics: [ofQueue("ApproximateAgeOfOldestMessage", "RolloutQueue")],
      statistic: "Maximum",
      above: LATE_SECONDS,
      minutes: TICKS,
    },
  };
}

/** Four fifths of the time that API servers wait for the pod webhook. */
const SLOW_MS = 4_000;
/** A flood: 500 a second. The figures of the costs take 50 a second for a busy cluster. */
const MANY_A_MINUTE = 30_000;

/** Five environments that are busy all the time: $12 a day with 1,769 MB. The flood above takes half of it. */
const BUSY_MS_A_MINUTE = 300_000;

/** Alarms that are worth their price where a minute of an outage costs more. */
function more(settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const turnedAway = answersOfDoor("4xx", settings);
  const ticking = tickingFunctions(settings);
  const latency = settings.door.kind === "function-urls" ? "UrlRequestLatency" : "Duration";
  return {
    PodsSlow: {
      says: `mutate-pod took longer than ${SLOW_MS / 1_000} of the 5 seconds that API servers wait for it, in two minutes`,
      tier: "page",
      metrics: [ofFunction(latency, POD_WEBHOOK, settings)],
      statistic: "Maximum",
      above: SLOW_MS,
      minutes: LASTING,
    },
    ...(turnedAway === undefined
      ? {}
      : {
          TurnedAway: {
            says: "in two minutes requests were turned away before a webhook decided (4xx): throttled, too large, not permitted, or refused by the webhook as a stranger's",
            tier: "ticket",
            metrics: [turnedAway],
            minutes: LASTING,
          },
        }),
    SidecarSetThrottles: {
      says: "a webhook of SidecarSets was throttled in two minutes: the account's concurrency, or what is reserved, is used up",
      tier: "ticket",
      metrics: SIDECARSET_WEBHOOKS.map((name) => ofFunction("Throttles", name, settings)),
      minutes: LASTING,
    },
    StaleView: {
      says: "mutate-pod or validate-sidecarset decided in two minutes by what it had read earlier: the API server does not answer it, and after five minutes pods are created without their sidecars",
      tier: "ticket",
      metrics: [ofLogs("StaleDecisions", settings)],
      minutes: LASTING,
    },
    PassProblems: {
      says: "in three minutes passes failed, were too short to read the pods of a SidecarSet, or were refused what they read or write: the log of rollout says what, and why",
      tier: "ticket",
      metrics: [ofLogs("PassProblems", settings)],
      minutes: [3, 10],
    },
    TicksDropped: {
      says: "Lambda throttled or dropped ticks in three minutes: the account's concurrency is used up, or rollout may not run",
      tier: "page",
      metrics: ticking.flatMap((name) =>
        ["Throttles", "AsyncEventsDropped"].map((metric) => ofFunction(metric, name, settings)),
      ),
      minutes: TICKS,
    },
    UnusualLoad: {
      says: "for five minutes mutate-pod was called far more often than pods are created: a flood of requests costs money",
      tier: "ticket",
      metrics: [ofFunction("Invocations", POD_WEBHOOK, settings)],
      above: MANY_A_MINUTE,
      minutes: [5, 5],
    },
    UnusualDuration: {
      says: "for five minutes mutate-pod ran for more than 300 seconds in each, far longer than new pods need: Lambda bills waiting too",
      tier: "ticket",
      metrics: [ofFunction("Duration", POD_WEBHOOK, settings)],
      above: BUSY_MS_A_MINUTE,
      minutes: [5, 5],
    },
  };
}

/**
 * An alarm for each schedule. With workers or several clusters, calls of the function do not prove that a schedule
 * runs.
 */
function noTicks(name: string, id: string, what: string, settings: AwsSettings): Readonly<Record<string, Alarm>> {
  const { clusters } = settings;
  const alarm = (metric: Metric, where = ""): Alarm => ({
    says: `${where}no tick was sent for five minutes: ${what}`,
    tier: "page",
    metrics: [metric],
    isAboutNone: true,
    minutes: [5, 5],
  });
  if (!hasScheduleGroups(settings)) return { [id]: alarm(ofFunction("Invocations", name, settings)) };
  if (clusters === undefined) return { [id]: alarm(callsOf(scheduleGroupId(name))) };
  return Object.fromEntries(
    [...clusters.keys()].map((cluster) => [
      `${id}Of${clusterId(cluster)}`,
      alarm(callsOf(scheduleGroupId(name, cluster)), `cluster ${cluster}: `),
    ]),
  );
}

/** A minute without a value counts as 0, as soon as there is a minute with one. */
function metricsOf({ metrics, statistic = "Sum", isAboutGrowth }: Alarm): object {
  const terms = metrics.map((Metric, index) => ({
    Id: `m${index}`,
    MetricStat: { Metric, Stat: statistic, Period: 60 },
    ReturnData: false,
  }));
  const filled = "FILL(METRICS(), 0)";
  const Expression = isAboutGrowth ? "DIFF(FILL(m0, 0))" : statistic === "Sum" ? `SUM(${filled})` : `MAX(${filled})`;
  return { Metrics: [...terms, { Id: "all", Expression }] };
}
