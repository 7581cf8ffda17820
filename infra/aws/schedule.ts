/** A tick every minute: EventBridge Scheduler hands it over once, and what it cannot hand over waits in a queue. */
import { functionId } from "./names.ts";
import { role } from "./roles.ts";

const ROLLOUT = { "Fn::GetAtt": [functionId("rollout"), "Arn"] };
const UNDELIVERED = { "Fn::GetAtt": ["UndeliveredTicks", "Arn"] };
/** The shortest that Lambda knows: a tick that had to wait longer is not worth running, the next one is there. */
const MAX_AGE_SECONDS = 60;
const DAY_SECONDS = 86_400;

export function schedule(): Readonly<Record<string, object>> {
  return {
    UndeliveredTicks: {
      Type: "AWS::SQS::Queue",
      Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: DAY_SECONDS },
    },
    ScheduleRole: role("scheduler.amazonaws.com", [
      { Effect: "Allow", Action: "lambda:InvokeFunction", Resource: ROLLOUT },
      { Effect: "Allow", Action: "sqs:SendMessage", Resource: UNDELIVERED },
    ]),
    Schedule: {
      Type: "AWS::Scheduler::Schedule",
      Properties: {
        Description: "One rollout pass over all SidecarSets",
        ScheduleExpression: "rate(1 minute)",
        FlexibleTimeWindow: { Mode: "OFF" },
        State: "ENABLED",
        Target: {
          Arn: ROLLOUT,
          RoleArn: { "Fn::GetAtt": ["ScheduleRole", "Arn"] },
          // A call that comes late, or twice, still says for which minute it is.
          Input: '{"scheduledTime":"<aws.scheduler.scheduled-time>"}',
          RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: MAX_AGE_SECONDS },
          DeadLetterConfig: { Arn: UNDELIVERED },
        },
      },
    },
    // The Scheduler's call is asynchronous, and Lambda itself would try a failed one twice more.
    RolloutInvocation: {
      Type: "AWS::Lambda::EventInvokeConfig",
      Properties: {
        FunctionName: { Ref: functionId("rollout") },
        Qualifier: "$LATEST",
        MaximumRetryAttempts: 0,
        MaximumEventAgeInSeconds: MAX_AGE_SECONDS,
      },
    },
  };
}
