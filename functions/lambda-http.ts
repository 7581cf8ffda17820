/** What Lambda hands over for an HTTP request, by API Gateway, Function URL or load balancer, and what it wants back. */
import type { ALBEvent, ALBResult, APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import type { AuthenticationSettings } from "../shared/authentication-settings.ts";
import { readAuthentication, readAwsAccess, readLogLevel } from "../shared/config.ts";
import { createLog } from "../shared/log.ts";
import { type WebhookOptions, webhookApp } from "../shared/webhook/app.ts";
import { authenticator } from "../shared/webhook/authenticate.ts";
import type { HttpAnswer, HttpRequest } from "../shared/webhook/http.ts";
import { certificateIn, loadBalancerCertificate } from "./load-balancer-certificate.ts";

/** API Gateway passes the certificate of mutual TLS along; a Function URL has none. */
type GatewayEvent = APIGatewayProxyEventV2 & {
  readonly requestContext: {
    readonly authentication?: { readonly clientCert?: { readonly clientCertPem?: string } | null } | null;
  };
};
type HttpEvent = GatewayEvent | ALBEvent;
export type HttpResult = APIGatewayProxyStructuredResultV2 & ALBResult;

/** Of the JSON that carries the answer, with room for what stands around its body. */
const MAX_GATEWAY_BYTES = 6 * 1024 * 1024 - 2_000;
const MAX_LOAD_BALANCER_BYTES = 1_000_000 - 2_000;

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

/** Node's own Request and Response load a whole HTTP client at their first use: most of a cold start. */
function fromLoadBalancer(event: ALBEvent, settings: AuthenticationSettings): HttpRequest {
  const { httpMethod: method, path } = event;
  const { clientCertificateFrom: source, loadBalancerListener: listener } = settings;
  const headers = byLowerCase(joined(event.headers, event.multiValueHeaders));
  const query = joined(event.queryStringParameters, event.multiValueQueryStringParameters)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  return {
    method,
    path,
    query,
    headers,
    clientCertificate: () => (source === "load-balancer" ? loadBalancerCertificate(event, listener) : undefined),
    readBody: async (maxBytes) => decode(event, maxBytes),
    canCarry: (body) => bytesAsJson(body) <= MAX_LOAD_BALANCER_BYTES,
  };
}

type Values = Readonly<Record<string, string | undefined>> | undefined;
type MultiValues = Readonly<Record<string, readonly string[] | undefined>> | undefined;

/** A load balancer sends either of the two, as its target group is set. A name that comes twice can't prove anything. */
function joined(values: Values, multiValues: MultiValues): readonly (readonly [string, string])[] {
  const multi = Object.entries(multiValues ?? {}).map(([name, list]) => [name, list?.join(", ") ?? ""] as const);
  return [...multi, ...Object.entries(values ?? {}).map(([name, value]) => [name, value ?? ""] as const)];
}

/** Names in several cases are one name that comes several times. */
function byLowerCase(entries: readonly (readonly [string, string])[]): Readonly<Record<string, string>> {
  const all = new Map<string, string>();
  for (const [name, value] of entries) {
    const known = all.get(name.toLowerCase());
    all.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(all);
}

function toResult({ status, headers, body }: HttpAnswer): HttpResult {
  return { statusCode: status, headers: { ...headers }, body, isBase64Encoded: false };
}

function toLoadBalancerResult({ multiValueHeaders }: ALBEvent, answer: HttpAnswer): HttpResult {
  const { headers, ...result } = toResult(answer);
  if (multiValueHeaders === undefined) return { headers, ...result };
  return { ...result, multiValueHeaders: Object.fromEntries(Object.entries(answer.headers).map(([k, v]) => [k, [v]])) };
}

function decode({ body, isBase64Encoded }: HttpEvent, maxBytes: number): string | undefined {
  const text = isBase64Encoded ? Buffer.from(body ?? "", "base64").toString("utf8") : (body ?? "");
  return Buffer.byteLength(text) > maxBytes ? undefined : text;
}

function bytesAsJson(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
