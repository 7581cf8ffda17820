/** A tick every minute: EventBridge Scheduler hands it over once, and what it cannot hand over waits in a queue. */
import { clusterId, functionId } from "./names.ts";
import { role } from "./roles.ts";
import type { AwsSettings } from "./settings.ts";

const UNDELIVERED = { "Fn::GetAtt": ["UndeliveredTicks", "Arn"] };
/** The shortest that Lambda knows: a tick that had to wait longer is not worth running, the next one is there. */
const MAX_AGE_SECONDS = 60;
const DAY_SECONDS = 86_400;

export function schedule(settings: AwsSettings): Readonly<Record<string, object>> {
  const { isServingStatefulSets, clusters } = settings;
  const each = clusters === undefined ? [undefined] : [...clusters.keys()];
  const called = isServingStatefulSets ? ["rollout", "ordered-set"] : ["rollout"];
  return {
    UndeliveredTicks: {
      Type: "AWS::SQS::Queue",
      Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: DAY_SECONDS },
    },
    ScheduleRole: role(
      "scheduler.amazonaws.com",
      [
        ...called.map((name) => ({ Effect: "Allow", Action: "lambda:InvokeFunction", Resource: arnOf(name) })),
        { Effect: "Allow", Action: "sqs:SendMessage", Resource: UNDELIVERED },
      ],
      { settings },
    ),
    ...schedules("Schedule", "rollout", { each, of: "SidecarSets" }),
    RolloutInvocation: onceOnly("rollout"),
    ...(isServingStatefulSets
      ? {
          ...schedules("OrderedSetSchedule", "ordered-set", { each, of: "ordered sets" }),
          OrderedSetInvocation: onceOnly("ordered-set"),
        }
      : {}),
  };
}

function arnOf(name: string): object {
  return { "Fn::GetAtt": [functionId(name), "Arn"] };
}

/** One for each cluster: an invocation, a deadline and memory of its own. `each`: undefined is the only one. */
function schedules(
  id: string,
  name: string,
  { each, of }: { readonly each: readonly (string | undefined)[]; readonly of: string },
): Readonly<Record<string, object>> {
  return Object.fromEntries(
    each.map((cluster) =>
      cluster === undefined
        ? [id, everyMinute(name, `One pass over all ${of}`)]
        : [`${id}Of${clusterId(cluster)}`, everyMinute(name, `One pass over all ${of} of cluster ${cluster}`, cluster)],
    ),
  );
}

function everyMinute(name: string, Description: string, cluster?: string): object {
  const ofCluster = cluster === undefined ? "" : `"cluster":"${cluster}",`;
  return {
    Type: "AWS::Scheduler::Schedule",
    Properties: {
      Description,
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
function onceOnly(name: string): object {
  return {
    Type: "AWS::Lambda::EventInvokeConfig",
    Properties: {
      FunctionName: { Ref: functionId(name) },
      Qualifier: "$LATEST",
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: MAX_AGE_SECONDS,
    },
  };
}
