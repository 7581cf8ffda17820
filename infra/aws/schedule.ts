/** A tick every minute: EventBridge Scheduler sends it once. Undelivered and failed ones wait in a queue. */
import { ALIAS, calledArn } from "./canary/alias.ts";
import { tickingFunctions } from "./deployed.ts";
import { aliasId, clusterId, functionId, functionName } from "./names.ts";
import { UNDELIVERED } from "./queue.ts";
import { role } from "./roles.ts";
import type { AwsSettings } from "./settings.ts";

/** The shortest age that Lambda knows: an older tick is not worth running, because the next one follows. */
const MAX_AGE_SECONDS = 60;
const DAY_SECONDS = 86_400;

export function schedule(settings: AwsSettings): Readonly<Record<string, object>> {
  const { isServingStatefulSets, clusters } = settings;
  const each = clusters === undefined ? [undefined] : [...clusters.keys()];
  const called = tickingFunctions(settings);
  return {
    UndeliveredTicks: {
      Type: "AWS::SQS::Queue",
      Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: DAY_SECONDS },
    },
    ScheduleRole: role(
      "scheduler.amazonaws.com",
      [
        ...called.map((name) => ({ Effect: "Allow", Action: "lambda:InvokeFunction", Resource: arnOf(name) })),
        ...(settings.isKeptWarm
          ? [{ Effect: "Allow", Action: "lambda:InvokeFunction", Resource: calledArn(WARM, settings) }]
          : []),
        { Effect: "Allow", Action: "sqs:SendMessage", Resource: UNDELIVERED },
      ],
      { settings },
    ),
    ...(settings.isKeptWarm ? { KeepWarm: keepWarm(settings), KeepWarmInvocation: pingOnce(settings) } : {}),
    ...schedules("Schedule", "rollout", { each, of: "SidecarSets" }, settings),
    RolloutInvocation: onceOnly("rollout"),
    ...(isServingStatefulSets
      ? {
          ...schedules("OrderedSetSchedule", "ordered-set", { each, of: "ordered sets" }, settings),
          OrderedSetInvocation: onceOnly("ordered-set"),
        }
      : {}),
  };
}

/** Pods wait for its first answer; it starts from nothing after some minutes without a call. */
const WARM = "mutate-pod";

/** Keeps one environment, with the facts that its first pod needs. A failed ping is not repeated. */
function keepWarm(settings: AwsSettings): object {
  return {
    Type: "AWS::Scheduler::Schedule",
    Properties: {
      Description: `Keeps one environment of ${WARM} warm`,
      ScheduleExpression: "rate(5 minutes)",
      FlexibleTimeWindow: { Mode: "OFF" },
      State: "ENABLED",
      Target: {
        Arn: calledArn(WARM, settings),
        RoleArn: { "Fn::GetAtt": ["ScheduleRole", "Arn"] },
        Input: '{"keepWarm":true}',
        RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: MAX_AGE_SECONDS },
      },
    },
  };
}

/** Stops Lambda's two retries of a failed ping, because the next ping comes in five minutes. */
function pingOnce({ canary }: AwsSettings): object {
  const { Type, Properties } = onceOnly(WARM);
  const { DestinationConfig: _, ...own } = Properties;
  if (canary === undefined) return { Type, Properties: own };
  return { Type, DependsOn: aliasId(WARM), Properties: { ...own, Qualifier: ALIAS } };
}

function arnOf(name: string): object {
  return { "Fn::GetAtt": [functionId(name), "Arn"] };
}

/**
 * The Scheduler counts by group. Each schedule has its own group where calls of a function do not prove that it runs.
 */
export function hasScheduleGroups({ clusters, rolloutWorkers }: AwsSettings): boolean {
  return clusters !== undefined || rolloutWorkers !== undefined;
}

export function scheduleGroupId(name: string, cluster?: string): string {
  const id = name === "rollout" ? "ScheduleGroup" : "OrderedSetScheduleGroup";
  return cluster === undefined ? id : `${id}Of${clusterId(cluster)}`;
}

/**
 * A schedule for each cluster, so that each has its own invocation, deadline and memory. `each`: undefined is the only
 * one.
 */
function schedules(
  id: string,
  name: string,
  { each, of }: { readonly each: readonly (string | undefined)[]; readonly of: string },
  settings: AwsSettings,
): Readonly<Record<string, object>> {
  return Object.fromEntries(
    each.flatMap((cluster) => {
      const groupId = scheduleGroupId(name, cluster);
      const [own, about] =
        cluster === undefined ? [id, ""] : [`${id}Of${clusterId(cluster)}`, ` of cluster ${cluster}`];
      const Name = functionName(cluster === undefined ? name : `${name}-${cluster}`, settings);
      const hasGroup = hasScheduleGroups(settings);
      const tick = everyMinute(name, `One pass over all ${of}${about}`, { cluster, ...(hasGroup ? { groupId } : {}) });
      return [
        ...(hasGroup ? [[groupId, { Type: "AWS::Scheduler::ScheduleGroup", Properties: { Name } }]] : []),
        [own, tick],
      ];
    }),
  );
}

interface Call {
  readonly cluster: string | undefined;
  readonly groupId?: string;
}

function everyMinute(name: string, Description: string, { cluster, groupId }: Call): object {
  const ofCluster = cluster === undefined ? "" : `"cluster":"${cluster}",`;
  return {
    Type: "AWS::Scheduler::Schedule",
    Properties: {
      Description,
      ...(groupId === undefined ? {} : { GroupName: { Ref: groupId } }),
      ScheduleExpression: "rate(1 minute)",
      FlexibleTimeWindow: { Mode: "OFF" },
      State: "ENABLED",
      Target: {
        Arn: arnOf(name),
        RoleArn: { "Fn::GetAtt": ["ScheduleRole", "Arn"] },
        // A late or repeated call still names its minute.
        Input: `{${ofCluster}"scheduledTime":"<aws.scheduler.scheduled-time>"}`,
        RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: MAX_AGE_SECONDS },
        DeadLetterConfig: { Arn: UNDELIVERED },
      },
    },
  };
}

/** The Scheduler's call is asynchronous, and Lambda itself would try a failed one twice more. */
function onceOnly(name: string) {
  return {
    Type: "AWS::Lambda::EventInvokeConfig",
    Properties: {
      FunctionName: { Ref: functionId(name) },
      Qualifier: "$LATEST",
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: MAX_AGE_SECONDS,
      DestinationConfig: { OnFailure: { Destination: UNDELIVERED } },
    },
  };
}
