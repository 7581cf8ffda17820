/** HTTP requests as API Gateway, a Function URL or a load balancer hands them to Lambda, and the answers for them. */
import { createLog, type Log } from "../../shared/log.ts";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import {
  type Environment,
  hasClusters,
  readAuthentication,
  readAwsAccess,
  readLogLevel,
} from "../../shared/settings/config.ts";
import { type WebhookOptions, webhookApp } from "../../shared/webhook/review/app.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import { certificateIn } from "../../shared/webhook/server/client-certificate.ts";
import type { HttpRequest } from "../../shared/webhook/server/http.ts";
import {
  bytesAsJson,
  decode,
  type GatewayEvent,
  type HttpEvent,
  type HttpHandler,
  MAX_GATEWAY_BYTES,
  type RestEvent,
  type Serve,
  toResult,
} from "./body.ts";
import { fromLoadBalancer, oneForm, toLoadBalancerResult } from "./load-balancer.ts";

/**
 * Makes a function's answers; without an environment from the process's own. `log`: for events that are no requests.
 */
type MakeWebhooks = (env: Environment | undefined, log: Log) => Omit<WebhookOptions, "log" | "isKnown">;

/**
 * Serves webhooks to callers that the settings allow.
 * @throws ConfigError as `Serve` does, if CLUSTERS is not set
 */
export function lambdaWebhook(make: MakeWebhooks): HttpHandler {
  const own = createLog(readLogLevel());
  const serve: Serve = (env, log = own, knownBy = ({ isKnown }) => isKnown) => {
    const settings = readAuthentication(env);
    const options = make(env, log);
    const hasConversions = options.conversions !== undefined;
    const known = authenticator(settings, { aws: readAwsAccess, log, now: Date.now }, { hasConversions });
    const answer = webhookApp({ ...options, log, isKnown: knownBy(known) });
    return async (event) =>
      "rawPath" in event
        ? toResult(await answer(fromGateway(event, settings)))
        : toLoadBalancerResult(event, await answer(fromLoadBalancer(event, settings)));
  };
  if (!hasClusters()) return refusingOthers(serve(), own);
  const several = import("./several-clusters.ts").then(({ severalClusters }) => severalClusters(serve, own));
  return refusingOthers(async (event) => (await several)(event), own);
}

const NO_REQUEST = "the event is no HTTP request; call it by API Gateway, Function URL or load balancer";

/** Answers events that are no requests: schedules and keep-warm plugins may call the function too. */
function refusingOthers(handler: HttpHandler, log: Log): HttpHandler {
  return async (event) => {
    const request = httpEvent(event);
    if (request !== undefined) return handler(request);
    log.warn(NO_REQUEST);
    return toResult({ status: 400, headers: { "content-type": "text/plain" }, body: NO_REQUEST });
  };
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

// Finds the HTTP request in an event of Lambda.

/** The default stage, which is not part of the path. */
const DEFAULT_STAGE = "$default";

/**
 * The event with the path that the caller wrote behind a named stage, and with one form of headers. With payload format
 * 1.0 API Gateway sends two forms, and the one with several values is complete. Undefined: it is no HTTP request.
 */
export function httpEvent(event: unknown): HttpEvent | undefined {
  if (typeof event !== "object" || event === null) return undefined;
  const { rawPath, path, httpMethod, requestContext } = event as Partial<Record<string, unknown>>;
  if (typeof requestContext !== "object" || requestContext === null) return undefined;
  const { stage, http } = requestContext as { readonly stage?: unknown; readonly http?: unknown };
  if (typeof rawPath === "string" && typeof http === "object" && http !== null)
    return { ...event, rawPath: behindStage(rawPath, stage) } as HttpEvent;
  if (typeof path !== "string" || typeof httpMethod !== "string") return undefined;
  if ("elb" in requestContext) return event as HttpEvent;
  return oneForm({ ...event, path: behindStage(path, stage) } as RestEvent);
}

function behindStage(path: string, stage: unknown): string {
  if (typeof stage !== "string" || stage === DEFAULT_STAGE || !path.startsWith(`/${stage}/`)) return path;
  return path.slice(stage.length + 1);
}
