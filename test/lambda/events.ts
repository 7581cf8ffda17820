/** Builds a webhook's request in the form of each front door of Lambda. */
import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from "aws-lambda";

export interface DoorRequest {
  readonly path: string;
  readonly body: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** client certificate that the front door verified, as PEM */
  readonly certificate?: string;
  readonly isBase64Encoded?: boolean;
}

export const TARGET_GROUP = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/webhooks/1";

const CONTENT = { "content-type": "application/json", "user-agent": "kube-apiserver-admission" };

function encoded({ body, isBase64Encoded = false }: DoorRequest) {
  return { body: isBase64Encoded ? Buffer.from(body).toString("base64") : body, isBase64Encoded };
}

/** Returns an event in payload format 2.0. */
function version2(request: DoorRequest, host: string, authentication: object): APIGatewayProxyEventV2 {
  const { path, method = "POST", headers = {} } = request;
  const http = { method, path, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "kube-apiserver-admission" };
  const requestContext = {
    accountId: "anonymous",
    apiId: "abc",
    domainName: host,
    http,
    requestId: "1",
    stage: "$default",
    ...authentication,
  };
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "timeout=10s",
    headers: { ...CONTENT, host, ...headers },
    requestContext: requestContext as unknown as APIGatewayProxyEventV2["requestContext"],
    ...encoded(request),
  };
}

export function functionUrl(request: DoorRequest): APIGatewayProxyEventV2 {
  return version2(request, "x.lambda-url.eu-central-1.on.aws", {});
}

/** Returns the event of an HTTP API with a custom domain; clientCert exists only with mutual TLS. */
export function httpApi(request: DoorRequest): APIGatewayProxyEventV2 {
  const { certificate } = request;
  const clientCert = {
    clientCertPem: certificate,
    subjectDN: "CN=whatever",
    issuerDN: "CN=clients",
    serialNumber: "1",
    validity: { notBefore: "Nov 1 00:00:00 2026 GMT", notAfter: "Nov 1 00:00:00 2027 GMT" },
  };
  const authentication = certificate === undefined ? null : { clientCert };
  return version2(request, "webhooks.example.com", { authentication });
}

/** Returns the event of an application load balancer whose target group has multi-value headers off. */
export function loadBalancer(request: DoorRequest): ALBEvent {
  const { path, method = "POST", headers = {}, certificate } = request;
  const leaf = certificate === undefined ? {} : { "x-amzn-mtls-clientcert-leaf": percentEncoded(certificate) };
  const forwarded = { "x-forwarded-for": "192.0.2.1", "x-forwarded-port": "443", "x-forwarded-proto": "https" };
  return {
    requestContext: { elb: { targetGroupArn: TARGET_GROUP } },
    httpMethod: method,
    path,
    queryStringParameters: { timeout: "10s" },
    headers: { ...CONTENT, host: "webhooks.example.com", ...forwarded, ...leaf, ...headers },
    ...encoded(request),
  };
}

/** Returns the same event with multi-value headers on. */
export function loadBalancerMultiValue(request: DoorRequest): ALBEvent {
  const { headers = {}, queryStringParameters: _, ...event } = loadBalancer(request);
  const multiValueHeaders = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ""]]));
  return { ...event, multiValueHeaders, multiValueQueryStringParameters: { timeout: ["10s"] } };
}

/** Returns the event of an HTTP API with a named stage, which starts the path. */
export function namedStage(request: DoorRequest): APIGatewayProxyEventV2 {
  const event = httpApi({ ...request, path: `/prod${request.path}` });
  return { ...event, requestContext: { ...event.requestContext, stage: "prod" } };
}

/** Returns the event of a REST API: payload format 1.0, which has both forms of headers. */
export function restApi(request: DoorRequest): APIGatewayProxyEvent {
  const { path, method = "POST", headers = {}, certificate } = request;
  const all = { "Content-Type": "application/json", Host: "x.execute-api.eu-central-1.amazonaws.com", ...headers };
  const identity = { sourceIp: "192.0.2.1", clientCert: certificate && { clientCertPem: certificate } };
  return {
    resource: "/{proxy+}",
    path,
    httpMethod: method,
    headers: all,
    multiValueHeaders: Object.fromEntries(Object.entries(all).map(([name, value]) => [name, [value]])),
    queryStringParameters: { timeout: "10s" },
    multiValueQueryStringParameters: { timeout: ["10s"] },
    pathParameters: { proxy: path.slice(1) },
    stageVariables: null,
    requestContext: { stage: "prod", path: `/prod${path}`, identity },
    ...encoded(request),
  } as unknown as APIGatewayProxyEvent;
}

/** Encodes as load balancers do: all characters except those that a PEM and a URL share. */
function percentEncoded(pem: string): string {
  return encodeURIComponent(pem).replaceAll("%2B", "+").replaceAll("%2F", "/").replaceAll("%3D", "=");
}
