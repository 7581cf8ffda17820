/** Bodies as Lambda hands them over, whichever door they came through. */
import type { ALBResult, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import type { HttpAnswer } from "../../shared/webhook/server/http.ts";

export type HttpResult = APIGatewayProxyStructuredResultV2 & ALBResult;

/** The longest body of an answer through API Gateway or a Function URL: JSON carries it, with fields around it. */
export const MAX_GATEWAY_BYTES = 6 * 1024 * 1024 - 2_000;

interface Body {
  readonly body?: string | null | undefined;
  readonly isBase64Encoded: boolean;
}

export function toResult({ status, headers, body }: HttpAnswer): HttpResult {
  return { statusCode: status, headers: { ...headers }, body, isBase64Encoded: false };
}

/** undefined: it is larger than that. */
export function decode({ body, isBase64Encoded }: Body, maxBytes: number): string | undefined {
  const text = isBase64Encoded ? Buffer.from(body ?? "", "base64").toString() : (body ?? "");
  return Buffer.byteLength(text) > maxBytes ? undefined : text;
}

export function bytesAsJson(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
