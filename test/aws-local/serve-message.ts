/**
 * A process that serves one message as the deployed function would, and that can be killed: `node serve-message.ts
 * BODY`.
 */
import type { SQSEvent } from "aws-lambda";
import { handler } from "../../functions/lambda/rollout.ts";

const [, , body = ""] = process.argv;
await handler({ Records: [{ body }] } as SQSEvent, { getRemainingTimeInMillis: () => 30_000 });
