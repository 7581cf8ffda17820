/** Turns a network failure into one sentence: the fault, its place, and the remedy. */
import type { Status } from "../api/admission.ts";
import { shownLine } from "../log.ts";
import { boundedMessage, isDenied, KubeError, type StatusCause } from "./error.ts";

/** The parts of a request that a sentence about its failure needs. */
export interface Attempt {
  /** method, such as GET or PATCH */
  readonly method: string;
  readonly url: URL;
  /** false while the request cannot have reached the API server: no connection was made */
  readonly isSent: boolean;
  /** name of the proxy for the connection */
  readonly proxy?: string | undefined;
}

interface Sentence {
  readonly reason: string;
  readonly text: string;
}

const BY_CODE: Readonly<Record<string, (server: string) => Sentence>> = {
  ECONNREFUSED: (server) => ({
    reason: "ConnectionRefused",
    text: `nothing listens on ${server}: check the server address and that the API server runs`,
  }),
  ENOTFOUND: nameNotFound,
  EAI_AGAIN: nameNotFound,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ETIMEDOUT: unreachable,
  EPROTO: notTls,
  ERR_SSL_WRONG_VERSION_NUMBER: notTls,
  HPE_INVALID_CONSTANT: notHttp,
  CERT_HAS_EXPIRED: (server) => ({
    reason: "CertificateNotTrusted",
    text: `the certificate of ${server} has expired: renew it`,
  }),
  ERR_TLS_CERT_ALTNAME_INVALID: (server) => ({
    reason: "CertificateNotTrusted",
    text: `the certificate of ${server} is not for this host name: use a name it is made for, or set tls-server-name`,
  }),
};

const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
]);

function nameNotFound(server: string): Sentence {
  return {
    reason: "NameNotFound",
    text: `the host name of ${server} cannot be resolved: check the server address and DNS`,
  };
}

function unreachable(server: string): Sentence {
  return { reason: "Unreachable", text: `${server} cannot be reached: check routes, firewall and security groups` };
}

function notTls(server: string): Sentence {
  return { reason: "NotTLS", text: `${server} does not speak TLS as expected: check the scheme and the port` };
}

function notHttp(server: string): Sentence {
  return { reason: "NotHTTP", text: `${server} does not speak HTTP: check the scheme and the port` };
}

/** A network error from any layer, as a KubeError with code 0. */
export function connectionFailure(cause: unknown, attempt: Attempt): KubeError {
  if (cause instanceof KubeError) return cause;
  const server = attempt.url.origin;
  const { reason, text } = proxyProblem(cause, attempt) ?? describe(cause, server);
  return new KubeError(`${attempt.method} ${attempt.url.pathname}: ${text}`, {
    code: 0,
    reason,
    isOutcomeKnown: !attempt.isSent,
    cause,
  });
}

const NOT_REACHED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);

/** Why the proxy cannot be reached, or what it refuses; undefined: another cause, or no proxy. */
function proxyProblem(cause: unknown, { proxy, url }: Attempt): Sentence | undefined {
  const code = codeOf(cause);
  if (proxy === undefined) return undefined;
  const way = `the proxy ${proxy} on the way to ${url.origin}`;
  if (NOT_REACHED.has(code))
    return { reason: "Unreachable", text: `${way} cannot be reached (${code}): check its address, or set NO_PROXY` };
  if (!code.startsWith("ERR_PROXY")) return undefined;
  return { reason: "Unreachable", text: `${way} opens no connection: ${shorten((cause as Error).message)}` };
}

function describe(cause: unknown, server: string): Sentence {
  const code = codeOf(cause);
  const known = BY_CODE[code];
  if (known) return known(server);
  if (UNTRUSTED.has(code))
    return {
      reason: "CertificateNotTrusted",
      text: `the certificate of ${server} is not signed by the certificate authority we were given: check certificate-authority-data`,
    };
  if (code.startsWith("ERR_SSL") || code.startsWith("ERR_TLS") || code.startsWith("ERR_OSSL"))
    return { reason: "TLS", text: `TLS with ${server} failed (${code}): check the certificates` };
  if (code === "ECONNRESET" || code === "EPIPE")
    return { reason: "ConnectionReset", text: `${server} closed the connection before it had answered` };
  return {
    reason: "ConnectionFailed",
    text: `no answer from ${server}: ${cause instanceof Error ? cause.message : cause}`,
  };
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors[0]);
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}

export function timeoutFailure(attempt: Attempt, timeoutMs: number): KubeError {
  const { method, url, isSent, proxy } = attempt;
  const way = proxy === undefined ? "" : ` through the proxy ${proxy}`;
  const what = isSent ? "did not answer" : `did not accept a connection${way}`;
  return new KubeError(`${method} ${url.pathname}: ${url.origin} ${what} within ${timeoutMs} ms`, {
    code: 0,
    reason: "Timeout",
    isOutcomeKnown: !isSent,
  });
}

/** An answer that ends early, or is not JSON although it reports success: the write it answers may have been carried out. */
export function unreadableAnswer(attempt: Attempt, code: number, problem: string, cause?: unknown): KubeError {
  const { method, url } = attempt;
  return new KubeError(`${method} ${url.pathname}: the answer of ${url.origin} ${problem}`, {
    code,
    reason: "UnreadableAnswer",
    isOutcomeKnown: false,
    cause,
  });
}

/** An answer to a list that is JSON and no list. */
export function notAList(attempt: Attempt, code: number, value: unknown): KubeError {
  const items = (value as { readonly items?: unknown } | null | undefined)?.items;
  const what = items === null ? `has "items": null` : "has no list of objects";
  const todo = "nothing was taken from this answer. Ask who runs the API server, or the proxy in front of it";
  return unreadableAnswer(attempt, code, `${what}; an API server sends a list, also an empty one: ${todo}`);
}

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  413: "RequestEntityTooLarge",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** An answer with an HTTP code of 400 or more: a Status of the API server, or some text of a proxy before it. */
export function refusal(attempt: Attempt, code: number, body: string, retryAfter: string | undefined): KubeError {
  const status = parseStatus(body);
  const { url, method } = attempt;
  if (code === 404 && !status && !isUnknownGroup(url.pathname, body)) return notFromApiServer(attempt, body);
  const seconds = (status && secondsIn(status)) ?? parseSeconds(retryAfter);
  return new KubeError(refusalMessage(attempt, code, status?.message ?? shorten(body)), {
    code: status?.code ?? code,
    reason: status?.reason ?? REASONS[code] ?? "Unknown",
    retryAfterSeconds: seconds,
    causes: status ? statusCauses(status) : [],
    cause: status ?? `${method} ${url.href} answered ${code}`,
  });
}

/**
 * An API server's answer for an unknown group, and a Go proxy's for an unknown path. For a known group it sends a
 * Status, for a missing object and for a kind that is not served.
 */
const UNKNOWN_PATH = "404 page not found";

/** True only for lists of a custom group, never for a single object: only a Status may say that one is gone. */
function isUnknownGroup(pathname: string, body: string): boolean {
  const [, group = "", rest = ""] = /\/apis\/([^/]+)\/[^/]+(?:\/(.+))?$/.exec(pathname) ?? [];
  if (!body.startsWith(UNKNOWN_PATH) || !group.includes(".") || group.endsWith(".k8s.io")) return false;
  const segments = rest.split("/");
  return segments.length === (segments[0] === "namespaces" ? 3 : 1);
}

/** A proxy that cannot reach the API server knows nothing about objects: its 404 does not mean that they are gone. */
function notFromApiServer(attempt: Attempt, body: string): KubeError {
  const text = shorten(body) || "nothing";
  return unreadableAnswer(
    attempt,
    502,
    `is 404 and not the API server's: does a proxy or load balancer stand between, or is the custom resource definition missing? ${text}`,
  );
}

function refusalMessage({ url, method }: Attempt, code: number, message: string): string {
  // A webhook may choose any code: its words are about one object, and not about our credentials.
  if (isDenied(message)) return message;
  if (code === 401)
    return `${url.origin} does not accept our credentials (401 Unauthorized): the token or certificate is expired or not valid there, renew it`;
  if (code === 404 && message.startsWith(UNKNOWN_PATH))
    return `${url.origin} does not know ${url.pathname}: is the custom resource definition installed?`;
  return message || `${method} ${url.pathname}: ${url.origin} answered ${code} without a reason`;
}

/** The beginning of a Status, with all of its message that came. */
const CUT_STATUS = /^[^"]*"kind":"Status".{0,200}?"message":("(?:[^"\\\p{Cc}]|\\u[\da-f]{4}|\\["\\/bfnrt])*)/isu;

function parseStatus(body: string): Status | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && "kind" in value && value.kind === "Status"
      ? readableStatus(value)
      : undefined;
  } catch {
    const [, message] = CUT_STATUS.exec(body) ?? [];
    return message === undefined ? undefined : { message: JSON.parse(`${message}"`) };
  }
}

/** HTTP allows a date too; API servers send seconds. */
function parseSeconds(retryAfter: string | undefined): number | undefined {
  return retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
}

function shorten(text: string): string {
  return shownLine(text, 200);
}

/** The error of a Status object that the API server answers with. */
export function errorOfStatus(said: unknown, httpCode: number): KubeError {
  const status = readableStatus(said);
  return new KubeError(status.message ?? `the API server answered ${httpCode}`, {
    code: status.code ?? httpCode,
    reason: status.reason ?? "Unknown",
    retryAfterSeconds: secondsIn(status),
    causes: statusCauses(status),
  });
}

const isText = (value: unknown) => typeof value === "string";
const MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  message: isText,
  reason: isText,
  code: Number.isInteger,
  details: (value) => typeof value === "object" && value !== null,
};

/** A Status without the members that are of another type than they should be: a server may send anything. */
function readableStatus(said: unknown): Status {
  const isReadable = ([name, value]: readonly [string, unknown]) => MEMBERS[name]?.(value) !== false;
  return Object.fromEntries(Object.entries(said ?? {}).filter(isReadable));
}

/** The causes that a Status names. A server that is not Kubernetes' own may send anything there. */
function statusCauses({ details }: Status): readonly StatusCause[] {
  const causes: unknown = details?.causes;
  if (!Array.isArray(causes)) return [];
  return causes.slice(0, 20).map((one) => ({
    reason: String(one?.reason ?? ""),
    message: boundedMessage(String(one?.message ?? "")),
  }));
}

/** A server may send anything there. */
function secondsIn({ details }: Status): number | undefined {
  return Number.isFinite(details?.retryAfterSeconds) ? details?.retryAfterSeconds : undefined;
}

/** A list whose next page is the page before never ends. */
export function samePage({ plural }: { readonly plural: string }): KubeError {
  const message = `LIST ${plural}: the answer names the page that was just read as the next one, so the list has no end`;
  return new KubeError(message, { code: 0, reason: "UnreadableAnswer" });
}

/** A success whose body is not JSON, for example from a proxy. */
export function notJson(attempt: Attempt, code: number, cause: unknown): KubeError {
  return unreadableAnswer(attempt, code, "is not JSON: is this an API server?", cause);
}
