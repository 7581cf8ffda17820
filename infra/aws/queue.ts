/** The queue through which SidecarSets are handed to several workers: one at a time for each SidecarSet. */
import { functionId, functionName } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

/** Longer than a worker's time, as Lambda requires. After it a failed message is retried; ticks behind it wait. */
const VISIBILITY_SECONDS = 70;
/** A tick that is older is not worth a pass. */
const RETENTION_SECONDS = 3_600;
/** The time in which people can look at failed messages. */
const FAILED_RETENTION_SECONDS = 1_209_600;
const MAX_RECEIVES = 5;

export const QUEUE_URL = { Ref: "RolloutQueue" };
export const QUEUE_ARN = { "Fn::GetAtt": ["RolloutQueue", "Arn"] };
/** The queue of ticks that were not run to their end, see schedule.ts. */
export const UNDELIVERED = { "Fn::GetAtt": ["UndeliveredTicks", "Arn"] };

/** The queue's resources; none if one function serves all SidecarSets. */
export function queue(settings: AwsSettings): Readonly<Record<string, object>> {
  const { rolloutWorkers } = settings;
  if (rolloutWorkers === undefined) return {};
  const fifo = (name: string, properties: object) => ({
    Type: "AWS::SQS::Queue",
    Properties: {
      QueueName: `${functionName(name, settings)}.fifo`,
      FifoQueue: true,
      SqsManagedSseEnabled: true,
      ...properties,
    },
  });
  return {
    FailedWork: fifo("failed-work", { MessageRetentionPeriod: FAILED_RETENTION_SECONDS }),
    RolloutQueue: fifo("rollout", {
      // Each SidecarSet has its own order, and its own limit of 300 messages a second.
      DeduplicationScope: "messageGroup",
      FifoThroughputLimit: "perMessageGroupId",
      VisibilityTimeout: VISIBILITY_SECONDS,
      MessageRetentionPeriod: RETENTION_SECONDS,
      RedrivePolicy: {
        deadLetterTargetArn: { "Fn::GetAtt": ["FailedWork", "Arn"] },
        maxReceiveCount: MAX_RECEIVES,
      },
    }),
    RolloutWorkers: {
      Type: "AWS::Lambda::EventSourceMapping",
      Properties: {
        EventSourceArn: QUEUE_ARN,
        FunctionName: { Ref: functionId("rollout") },
        BatchSize: 1,
        ScalingConfig: { MaximumConcurrency: rolloutWorkers },
      },
    },
  };
}
