/** What Lambda hands over for an HTTP request, by API Gateway, Function URL or load balancer, and what it wants back. */
import type { ALBEvent, APIGatewayProxyEventV2 } from "aws-lambda";
import { createLog } from "../../shared/log.ts";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import { readAuthentication, readAwsAccess, readLogLevel } from "../../shared/settings/config.ts";
import { type WebhookOptions, webhookApp } from "../../shared/webhook/review/app.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import { certificateIn } from "../../shared/webhook/server/client-certificate.ts";
import type { HttpRequest } from "../../shared/webhook/server/http.ts";
import { bytesAsJson, decode, type HttpResult, toResult } from "./body.ts";
import { fromLoadBalancer, toLoadBalancerResult } from "./load-balancer.ts";

/** API Gateway passes the certificate of mutual TLS along; a Function URL has none. */
type GatewayEvent = APIGatewayProxyEventV2 & {
  readonly requestContext: {
    readonly authentication?: { readonly clientCert?: { readonly clientCertPem?: string } | null } | null;
  };
};
type HttpEvent = GatewayEvent | ALBEvent;

/** Of the JSON that carries the answer, with room for what stands around its body. */
const MAX_GATEWAY_BYTES = 6 * 1024 * 1024 - 2_000;

/**
 * A function that serves these webhooks to those that the settings let in.
 * @throws ConfigError when there is a setting that can't be used, or no AUTHENTICATION
 */
export function lambdaWebhook(
  options: Omit<WebhookOptions, "log" | "isKnown">,
): (event: HttpEvent) => Promise<HttpResult> {
  const log = createLog(readLogLevel());
  const settings = readAuthentication();
  const hasConversions = options.conversions !== undefined;
  const { isKnown } = authenticator(settings, { aws: readAwsAccess, log, now: Date.now }, { hasConversions });
  const answer = webhookApp({ ...options, log, isKnown });
  return async (event) =>
    "rawPath" in event
      ? toResult(await answer(fromGateway(event, settings)))
      : toLoadBalancerResult(event, await answer(fromLoadBalancer(event, settings)));
}

function fromGateway(event: GatewayEvent, { clientCertificateFrom: source }: AuthenticationSettings): HttpRequest {
  const { rawPath: path, rawQueryString: query, headers, requestContext } = event;
  const pem = source === "api-gateway" ? requestContext.authentication?.clientCert?.clientCertPem : undefined;
  return {
    method: requestContext.http.method,
    path,
    query,
    headers,
    clientCertificate: () => certificateIn(pem),
    readBody: async (maxBytes) => decode(event, maxBytes),
    canCarry: (body) => bytesAsJson(body) <= MAX_GATEWAY_BYTES,
  };
}
