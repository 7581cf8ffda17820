/** Bodies of requests and answers as Lambda passes them, for every kind of front door. */
import type {
  ALBEvent,
  ALBResult,
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  APIGatewayProxyStructuredResultV2,
} from "aws-lambda";
import type { Log } from "../../shared/log.ts";
import type { Environment } from "../../shared/settings/config.ts";
import type { Authenticate, Authenticator } from "../../shared/webhook/server/authenticate.ts";
import type { HttpAnswer } from "../../shared/webhook/server/http.ts";

export type HttpResult = APIGatewayProxyStructuredResultV2 & ALBResult;

/** The longest body of an answer through API Gateway or a Function URL. JSON carries the body, with further fields. */
export const MAX_GATEWAY_BYTES = 6 * 1024 * 1024 - 2_000;

interface Body {
  readonly body?: string | null | undefined;
  readonly isBase64Encoded: boolean;
}

export function toResult({ status, headers, body }: HttpAnswer): HttpResult {
  return { statusCode: status, headers: { ...headers }, body, isBase64Encoded: false };
}

/** The decoded body; undefined: the body is larger than allowed. */
export function decode({ body, isBase64Encoded }: Body, maxBytes: number): string | undefined {
  const text = isBase64Encoded ? Buffer.from(body ?? "", "base64").toString() : (body ?? "");
  return Buffer.byteLength(text) > maxBytes ? undefined : text;
}

export function bytesAsJson(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}

// Lambda's calls for HTTP requests. One function may answer with several sets of settings.

/** API Gateway passes on the certificate of mutual TLS; a Function URL has none. */
export type GatewayEvent = APIGatewayProxyEventV2 & {
  readonly requestContext: {
    readonly authentication?: { readonly clientCert?: { readonly clientCertPem?: string } | null } | null;
  };
};
/** The event of a REST API, or of payload format 1.0. */
export type RestEvent = APIGatewayProxyEvent;
export type HttpEvent = GatewayEvent | ALBEvent | RestEvent;

export type HttpHandler = (event: HttpEvent) => Promise<HttpResult>;

/**
 * Answers with these settings, or with the process's own. @throws ConfigError if one is unusable or AUTHENTICATION
 * absent
 */
export type Serve = (env?: Environment, log?: Log, knownBy?: (of: Authenticator) => Authenticate) => HttpHandler;
