/** What Lambda hands over for an HTTP request, by API Gateway, Function URL or load balancer, and what it wants back. */
import type { ALBEvent, ALBResult, APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import type { Answerer, HttpRequest } from "../shared/webhook/http.ts";

type HttpEvent = APIGatewayProxyEventV2 | ALBEvent;
export type HttpResult = APIGatewayProxyStructuredResultV2 & ALBResult;

/** Node's own Request and Response load a whole HTTP client at their first use: most of a cold start. */
export function handle(answer: Answerer): (event: HttpEvent) => Promise<HttpResult> {
  return async (event) => {
    const { status, headers, body } = await answer(toRequest(event));
    return { statusCode: status, headers: { ...headers }, body, isBase64Encoded: false };
  };
}

function toRequest(event: HttpEvent): HttpRequest {
  const readBody = async (maxBytes: number) => decode(event, maxBytes);
  if ("rawPath" in event) {
    const { rawPath: path, rawQueryString: query, headers, requestContext } = event;
    return { method: requestContext.http.method, path, query, headers, readBody };
  }
  const { httpMethod: method, path, queryStringParameters = {}, headers = {} } = event;
  const query = new URLSearchParams(queryStringParameters as Record<string, string>).toString();
  return { method, path, query, headers, readBody };
}

function decode({ body, isBase64Encoded }: HttpEvent, maxBytes: number): string | undefined {
  const text = isBase64Encoded ? Buffer.from(body ?? "", "base64").toString("utf8") : (body ?? "");
  return Buffer.byteLength(text) > maxBytes ? undefined : text;
}
