/**
 * Takes messages out of a queue as Lambda does for a function: one at a time for each worker. Failed messages stay in
 * the queue.
 */
import type { SQSEvent, SQSRecord } from "aws-lambda";
import type { Sqs } from "./server.ts";

export interface Received {
  readonly MessageId: string;
  readonly ReceiptHandle: string;
  readonly Body: string;
  readonly Attributes?: Readonly<Record<string, string>>;
}

export interface Delivery {
  readonly group: string;
  readonly body: string;
  readonly beganAt: number;
  readonly endedAt: number;
  readonly failure?: string;
}

export interface PollOptions {
  readonly sqs: Sqs;
  readonly queueUrl: string;
  readonly workers: number;
  readonly serve: (event: SQSEvent) => Promise<unknown>;
  /** returns true when enough messages were delivered */
  readonly isOver: (deliveries: readonly Delivery[]) => boolean;
}

/** Returns the delivered messages, in the order in which they ended. */
export async function poll(options: PollOptions): Promise<readonly Delivery[]> {
  const deliveries: Delivery[] = [];
  const work = async () => {
    while (!options.isOver(deliveries)) {
      const message = await receive(options);
      if (message !== undefined) deliveries.push(await deliver(options, message));
    }
  };
  await Promise.all(Array.from({ length: options.workers }, work));
  // The answers to two deletions may arrive in either order.
  return deliveries.toSorted((one, other) => one.endedAt - other.endedAt);
}

/** Receives a message that may be served now. No other client gets it for some time. */
export async function receive({ sqs, queueUrl }: Pick<PollOptions, "sqs" | "queueUrl">): Promise<Received | undefined> {
  const { Messages = [] } = await sqs.call<{ readonly Messages?: readonly Received[] }>("ReceiveMessage", {
    QueueUrl: queueUrl,
    MaxNumberOfMessages: 1,
    AttributeNames: ["All"],
  });
  return Messages[0];
}

async function deliver({ sqs, queueUrl, serve }: PollOptions, message: Received): Promise<Delivery> {
  const { Body: body, ReceiptHandle, Attributes: attributes = {} } = message;
  const record = { messageId: message.MessageId, receiptHandle: ReceiptHandle, body, attributes };
  const beganAt = performance.now();
  const facts = { group: attributes["MessageGroupId"] ?? "", body, beganAt };
  try {
    await serve({ Records: [{ ...record, eventSource: "aws:sqs" } as unknown as SQSRecord] });
  } catch (error) {
    return { ...facts, endedAt: performance.now(), failure: (error as Error).message };
  }
  const endedAt = performance.now();
  await sqs.call("DeleteMessage", { QueueUrl: queueUrl, ReceiptHandle });
  return { ...facts, endedAt };
}
