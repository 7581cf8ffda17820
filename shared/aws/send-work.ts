/** Puts work into the queue of rollouts. */
import { type Message, messageOf, type Work } from "../core/rollout/queue/work.ts";
import type { AwsAccess, Queue } from "./access.ts";
import { AwsError, awsJson } from "./signed-request.ts";

interface BatchAnswer {
  readonly Failed?: readonly { readonly Id: string; readonly Code?: string }[];
}

/** The most that SQS takes in one request. */
const BATCH = 10;

/**
 * All of it, or as much as there is until something fails; to send it again does no harm. `cluster`: of several.
 * @throws AwsError
 */
export async function sendWork(
  queue: Queue,
  works: readonly Work[],
  access: AwsAccess,
  cluster?: string,
): Promise<void> {
  const messages = works.map((work) => messageOf(work, cluster));
  for (let at = 0; at < messages.length; at += BATCH) await sendBatch(queue, messages.slice(at, at + BATCH), access);
}

async function sendBatch({ url, region }: Queue, messages: readonly Message[], access: AwsAccess): Promise<void> {
  const body = { QueueUrl: url, Entries: messages.map((message, index) => ({ Id: String(index), ...message })) };
  const target = "AmazonSQS.SendMessageBatch";
  const answer = await awsJson<BatchAnswer>({ service: "sqs", region, target, jsonVersion: "1.0", body }, access);
  const [failed] = answer.Failed ?? [];
  if (failed === undefined) return;
  const message = `the queue of rollouts did not take ${answer.Failed?.length} of ${messages.length} messages: ${failed.Code}`;
  throw new AwsError(message, { code: failed.Code ?? "" });
}
