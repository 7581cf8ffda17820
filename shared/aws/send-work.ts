/** Puts work into the queue of rollouts. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Message, queueMessage, type Work } from "../core/rollout/queue/work.ts";
import type { AwsAccess, Queue } from "./access.ts";
import { AwsError, awsJson } from "./signed-request.ts";

interface Failed {
  readonly Id: string;
  readonly Code?: string;
  /** true: the message is wrong, and would be refused again */
  readonly SenderFault?: boolean;
}

interface BatchAnswer {
  readonly Successful?: readonly { readonly Id: string }[];
  readonly Failed?: readonly Failed[];
}

/** Limit of messages in one request, by SQS. */
const BATCH = 10;
/** Number of parallel requests: an answer takes ten times as long as this project's own work for it. */
const REQUESTS_AT_ONCE = 16;
/** Limit of attempts for messages that SQS itself could not store. */
const MAX_ATTEMPTS = 3;
const RETRY_MS = 100;

/**
 * Sends all work that the queue accepts, or as much as possible until a request fails; sending again does no harm.
 * `cluster`: its name, in a deployment for several. Messages of one group are sent in no order. @throws AwsError
 */
export async function sendWork(
  queue: Queue,
  works: readonly Work[],
  access: AwsAccess,
  cluster?: string,
): Promise<void> {
  const left = works.map((work) => queueMessage(work, cluster));
  const refused: AwsError[] = [];
  const send = async () => {
    while (left.length > 0) {
      const refusal = await sendBatch(queue, left.splice(0, BATCH), access).catch((error: unknown) => {
        left.length = 0;
        throw error;
      });
      if (refusal !== undefined) refused.push(refusal);
    }
  };
  const senders = Math.min(REQUESTS_AT_ONCE, Math.ceil(left.length / BATCH));
  // Waits for all requests: Lambda freezes a function after its answer, with unfinished requests.
  for (const end of await Promise.allSettled(Array.from({ length: senders }, send)))
    if (end.status === "rejected") throw end.reason;
  if (refused[0] !== undefined) throw refused[0];
}

/** The messages that SQS did not keep; undefined: it keeps all. */
async function sendBatch(queue: Queue, messages: readonly Message[], access: AwsAccess): Promise<AwsError | undefined> {
  const entries = messages.map((message, index) => ({ Id: String(index), ...message }));
  const lost = await sendEntries(queue, entries, access);
  if (lost[0] === undefined) return undefined;
  const { Code: code = "" } = lost[0];
  const why = code === "" ? "its answer does not name them" : code;
  return new AwsError(`the queue of rollouts did not take ${lost.length} of ${messages.length} messages: ${why}`, {
    code,
  });
}

/** Returns the messages that SQS did not keep. Messages without an answer are sent again. */
async function sendEntries(
  { url, region }: Queue,
  entries: readonly (Message & { readonly Id: string })[],
  access: AwsAccess,
): Promise<readonly Failed[]> {
  const request = { service: "sqs", region, target: "AmazonSQS.SendMessageBatch", jsonVersion: "1.0" } as const;
  const refused: Failed[] = [];
  let left = entries;
  for (let attempt = 1; ; attempt++) {
    const answer = await awsJson<BatchAnswer>({ ...request, body: { QueueUrl: url, Entries: left } }, access);
    const kept = new Set(answer.Successful?.map(({ Id }) => Id));
    const failed = new Map(answer.Failed?.map((one) => [one.Id, one]));
    refused.push(...[...failed.values()].filter(({ SenderFault }) => SenderFault));
    left = left.filter(({ Id }) => !kept.has(Id) && !failed.get(Id)?.SenderFault);
    if (left.length === 0) return refused;
    if (attempt === MAX_ATTEMPTS) return [...refused, ...left.map(({ Id }) => failed.get(Id) ?? { Id })];
    await sleep(RETRY_MS * 2 ** attempt);
  }
}
