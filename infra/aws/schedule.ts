/** A tick every minute: EventBridge Scheduler hands it over once. What it cannot hand over, and what fails, waits in a queue. */
import { ALIAS, calledArn } from "./canary/alias.ts";
import { tickingFunctions } from "./deployed.ts";
import { aliasId, clusterId, functionId, functionName } from "./names.ts";
import { UNDELIVERED } from "./queue.ts";
import { role } from "./roles.ts";
import type { AwsSettings } from "./settings.ts";

/** The shortest that Lambda knows: a tick that had to wait longer is not worth running, the next one is there. */
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

/** One environment is kept, with what its first pod needs. A ping that fails is worth no second one. */
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

/** Lambda would try a ping that failed twice more. Nobody looks at a ping that failed: the next one is there in five minutes. */
function pingOnce({ canary }: AwsSettings): object {
  const { Type, Properties } = onceOnly(WARM);
  const { DestinationConfig: _, ...own } = Properties;
  if (canary === undefined) return { Type, Properties: own };
  return { Type, DependsOn: aliasId(WARM), Properties: { ...own, Qualifier: ALIAS } };
}

function arnOf(name: string): object {
  return { "Fn::GetAtt": [functionId(name), "Arn"] };
}

/** The Scheduler's numbers are of groups. Where calls of a function do not tell that a schedule goes on, each has its own. */
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
        // A call that comes late, or twice, still says for which minute it is.
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
