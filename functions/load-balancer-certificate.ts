/** The client certificate that an application load balancer verified, and only that: one header, of the listener that verifies. */
import { X509Certificate } from "node:crypto";
import type { ALBEvent } from "aws-lambda";
import type { LoadBalancerListener } from "../shared/authentication-settings.ts";

/** From a listener that verifies client certificates: the certificate, percent-encoded. */
const LEAF_HEADER = "x-amzn-mtls-clientcert-leaf";

/** One block and nothing else: OpenSSL reads the first of several, whatever stands around it. */
const ONE_PEM = /^-----BEGIN CERTIFICATE-----\r?\n(?:[A-Za-z0-9+/=]+\r?\n)+-----END CERTIFICATE-----(?:\r?\n)?$/;

type Event = Pick<ALBEvent, "requestContext" | "headers" | "multiValueHeaders">;

/**
 * Every value that the event has for a name in lower case. A load balancer sends one form of headers, as its target group
 * is set; who sends both, or a name in two cases, has several values.
 */
function valuesOf({ headers, multiValueHeaders }: Event, wanted: string): readonly (string | undefined)[] {
  const all = [...Object.entries(multiValueHeaders ?? {}), ...Object.entries(headers ?? {})];
  return all.flatMap(([name, value]) => (name.toLowerCase() === wanted ? (value ?? "") : []));
}

function isOnly(values: readonly (string | undefined)[], wanted: string): boolean {
  return values.length === 1 && values[0] === wanted;
}

/** A target group may stand behind several listeners, of which another lets anybody write the header. */
function isFrom(event: Event, { targetGroup, port }: LoadBalancerListener): boolean {
  const { elb } = event.requestContext as Partial<ALBEvent["requestContext"]>;
  return (
    elb?.targetGroupArn === targetGroup &&
    isOnly(valuesOf(event, "x-forwarded-port"), String(port)) &&
    isOnly(valuesOf(event, "x-forwarded-proto"), "https")
  );
}

/** undefined: nothing is proven. */
export function loadBalancerCertificate(
  event: Event,
  listener: LoadBalancerListener | undefined,
): X509Certificate | undefined {
  if (listener === undefined || !isFrom(event, listener)) return undefined;
  const [leaf, ...others] = valuesOf(event, LEAF_HEADER);
  return others.length === 0 ? certificateIn(decoded(leaf)) : undefined;
}

/** undefined also for what is no certificate, or more than one. */
export function certificateIn(pem: string | undefined): X509Certificate | undefined {
  if (pem === undefined || !ONE_PEM.test(pem)) return undefined;
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
