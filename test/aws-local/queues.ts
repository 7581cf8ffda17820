/** Creates the two queues of a deployment on a server of this machine, and reads them. */
import { queue as queueResources } from "../../infra/aws/queue.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import type { Queue } from "../../shared/aws/access.ts";
import { REGION, type Sqs } from "./server.ts";

export interface Queues {
  readonly work: Queue;
  /** URL of the queue for messages that failed too often */
  readonly failedUrl: string;
}

export interface QueuesOptions {
  /** stage of the deployment */
  readonly stage: string;
  readonly workers: number;
  /** visibility timeout, shorter than a deployment's minute, so that failed messages return during the test */
  readonly visibilitySeconds: number;
}

export async function createQueues(sqs: Sqs, { stage, workers, visibilitySeconds }: QueuesOptions): Promise<Queues> {
  const settings = await readSettings("sidecarset", stage, async (name) =>
    name === "rollout-workers" ? String(workers) : "",
  );
  const resources = queueResources(settings) as Record<string, { readonly Properties: Record<string, unknown> }>;
  const failed = await createQueue(sqs, resources["FailedWork"]?.Properties ?? {});
  const properties = resources["RolloutQueue"]?.Properties ?? {};
  const { maxReceiveCount } = properties["RedrivePolicy"] as { readonly maxReceiveCount: number };
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: failed.arn, maxReceiveCount });
  const { url } = await createQueue(sqs, { ...properties, VisibilityTimeout: visibilitySeconds, RedrivePolicy });
  return { work: { url, region: REGION }, failedUrl: failed.url };
}

async function createQueue(sqs: Sqs, { QueueName, ...properties }: Readonly<Record<string, unknown>>) {
  const { SqsManagedSseEnabled: _, ...rest } = properties;
  const Attributes = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)]));
  const { QueueUrl: url } = await sqs.call<{ QueueUrl: string }>("CreateQueue", { QueueName, Attributes });
  return { url, arn: await attribute(sqs, url, "QueueArn") };
}

/** Returns the number of messages that no worker has taken. */
export async function waiting(sqs: Sqs, url: string): Promise<number> {
  return Number(await attribute(sqs, url, "ApproximateNumberOfMessages"));
}

async function attribute(sqs: Sqs, QueueUrl: string, name: string): Promise<string> {
  const body = { QueueUrl, AttributeNames: [name] };
  const { Attributes } = await sqs.call<{ Attributes: Record<string, string> }>("GetQueueAttributes", body);
  return Attributes[name] ?? "";
}
