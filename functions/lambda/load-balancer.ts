/** HTTP requests of a load balancer, or of API Gateway with payload format 1.0, and the answers for them. */
import type { X509Certificate } from "node:crypto";
import type { ALBEvent } from "aws-lambda";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import { certificateIn } from "../../shared/webhook/server/client-certificate.ts";
import type { HttpAnswer, HttpRequest } from "../../shared/webhook/server/http.ts";
import { bytesAsJson, decode, type HttpResult, MAX_GATEWAY_BYTES, type RestEvent, toResult } from "./body.ts";

/** The limit of the JSON that carries the answer, without the space for its other fields. */
const MAX_LOAD_BALANCER_BYTES = 1_000_000 - 2_000;

/** The percent-encoded certificate, from a listener that verifies client certificates. */
const LEAF_HEADER = "x-amzn-mtls-clientcert-leaf";

/** Converts the event. It avoids Node's Request and Response, whose HTTP client takes most of a cold start. */
export function fromLoadBalancer(event: ALBEvent | RestEvent, settings: AuthenticationSettings): HttpRequest {
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
    clientCertificate: () =>
      source === "load-balancer"
        ? loadBalancerCertificate(event, listener)
        : certificateIn(source === "api-gateway" ? gatewayCertificate(event) : undefined),
    readBody: async (maxBytes) => decode(event, maxBytes),
    canCarry: (body) => bytesAsJson(body) <= (isOfLoadBalancer(event) ? MAX_LOAD_BALANCER_BYTES : MAX_GATEWAY_BYTES),
  };
}

function isOfLoadBalancer(event: ALBEvent | RestEvent): event is ALBEvent {
  return "elb" in event.requestContext;
}

/** The client certificate that API Gateway has verified; a load balancer's event has no such field. */
function gatewayCertificate(event: ALBEvent | RestEvent): string | undefined {
  return isOfLoadBalancer(event) ? undefined : event.requestContext.identity?.clientCert?.clientCertPem;
}

export function toLoadBalancerResult({ multiValueHeaders }: ALBEvent | RestEvent, answer: HttpAnswer): HttpResult {
  const { headers, ...result } = toResult(answer);
  if (multiValueHeaders === undefined) return { headers, ...result };
  return { ...result, multiValueHeaders: Object.fromEntries(Object.entries(answer.headers).map(([k, v]) => [k, [v]])) };
}

type Values = Readonly<Record<string, string | undefined>> | null | undefined;
type MultiValues = Readonly<Record<string, readonly string[] | undefined>> | null | undefined;

/**
 * One value of a header. A load balancer sends one of the two forms, as its target group is set. A header that comes
 * twice proves nothing.
 */
function joined(values: Values, multiValues: MultiValues): readonly (readonly [string, string])[] {
  const multi = Object.entries(multiValues ?? {}).map(([name, list]) => [name, list?.join(", ") ?? ""] as const);
  return [...multi, ...Object.entries(values ?? {}).map(([name, value]) => [name, value ?? ""] as const)];
}

/** Groups headers by name in lower case, so that names that differ only in case are one repeated name. */
function byLowerCase(entries: readonly (readonly [string, string])[]): Readonly<Record<string, string>> {
  const all = new Map<string, string>();
  for (const [name, value] of entries) {
    const known = all.get(name.toLowerCase());
    all.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(all);
}

type Event = ALBEvent | RestEvent;

/**
 * Every value that the event has for a name in lower case. An event with both forms, or with one name in two cases,
 * gives several values.
 */
function valuesOf({ headers, multiValueHeaders }: Event, wanted: string): readonly (string | undefined)[] {
  const all = [...Object.entries(multiValueHeaders ?? {}), ...Object.entries(headers ?? {})];
  return all.flatMap(([name, value]) => (name.toLowerCase() === wanted ? (value ?? "") : []));
}

function only(event: Event, wanted: string): string | undefined {
  const [value, ...others] = valuesOf(event, wanted);
  return others.length === 0 ? value : undefined;
}

/**
 * Checks the listener, because a target group may have several: through another listener anybody can write the header.
 */
function isFrom(event: Event, listener: string): boolean {
  const { elb } = event.requestContext as Partial<ALBEvent["requestContext"]>;
  const from = `${elb?.targetGroupArn}:${only(event, "x-forwarded-port")}`;
  return from === listener && only(event, "x-forwarded-proto") === "https";
}

/** The certificate of the caller; undefined: the event proves none. */
function loadBalancerCertificate(event: Event, listener: string | undefined): X509Certificate | undefined {
  if (listener === undefined || !isFrom(event, listener)) return undefined;
  return certificateIn(decoded(only(event, LEAF_HEADER)));
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The event with one form of headers and query. If the form with several values exists, it is complete and is used. */
export function oneForm({ headers, queryStringParameters, ...event }: RestEvent): RestEvent {
  return {
    ...event,
    ...(event.multiValueHeaders ? {} : { headers }),
    ...(event.multiValueQueryStringParameters ? {} : { queryStringParameters }),
  } as RestEvent;
}
