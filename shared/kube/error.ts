/** Errors: the answers of an API server, or of the network, in place of an object. */
import { shownLine } from "../log.ts";

/** One entry of `details.causes` in a Status. */
export interface StatusCause {
  /** reason, such as DisruptionBudget */
  readonly reason: string;
  readonly message: string;
}

interface KubeErrorFacts {
  readonly code: number;
  readonly reason: string;
  readonly isOutcomeKnown?: boolean;
  readonly retryAfterSeconds?: number | undefined;
  readonly causes?: readonly StatusCause[];
  readonly cause?: unknown;
}

const MAX_MESSAGE = 4_096;

/** The message with limits: a tenant's webhook may answer with megabytes, and with characters that hide others. */
export function boundedMessage(message: string): string {
  return shownLine(message, MAX_MESSAGE);
}

/**
 * `reason`: from metav1.Status (NotFound, Conflict, AlreadyExists, Invalid, Expired, …), or this project's for network
 * errors.
 */
export class KubeError extends Error {
  override readonly name = "KubeError";
  /** HTTP status, 0 when there was no answer */
  readonly code: number;
  readonly reason: string;
  /** false: the request may have been carried out (timeout, reset after sending, 5xx of no webhook) */
  readonly isOutcomeKnown: boolean;
  readonly retryAfterSeconds: number | undefined;
  /** causes in the API server's terms; empty if it names none */
  readonly causes: readonly StatusCause[];

  constructor(message: string, facts: KubeErrorFacts) {
    // API servers quote the whole URL of a webhook that they could not call.
    super(boundedMessage(message), { cause: facts.cause });
    this.code = facts.code;
    this.reason = facts.reason;
    this.isOutcomeKnown = facts.isOutcomeKnown ?? ((facts.code >= 400 && facts.code < 500) || isDenied(message));
    this.retryAfterSeconds = facts.retryAfterSeconds;
    this.causes = facts.causes ?? [];
  }
}

/** kube-apiserver's words before a denying webhook's. Nothing is stored before every webhook has allowed it. */
const DENIED = /^admission webhook "[^"]{1,253}" denied the request/;

/** True if a webhook denied the request. It was not carried out, with any code, and other requests may succeed. */
export function isDenied(message: string): boolean {
  return DENIED.test(message);
}

/** The same error, with its subject. */
export function about(what: string, cause: KubeError): KubeError {
  const { code, reason, isOutcomeKnown, retryAfterSeconds, causes } = cause;
  const facts = { code, reason, isOutcomeKnown, retryAfterSeconds, causes };
  return new KubeError(`${what}: ${cause.message}`, { ...facts, cause });
}

/** True for a KubeError with one of these HTTP codes. */
export function isKubeError(error: unknown, ...codes: readonly number[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}

/** The object; undefined: it does not exist (404). */
export function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  return unless(404, reading);
}

/** The result; undefined: the caller may not read it (403). */
export function ifAllowed<T>(reading: Promise<T>): Promise<T | undefined> {
  return unless(403, reading);
}

/** The result of the call; undefined if the API server answered with this code. */
export async function unless<T>(code: number, call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isKubeError(error, code)) return undefined;
    throw error;
  }
}

const TROUBLE_ON_THE_WAY: ReadonlySet<string> = new Set([
  "ConnectionFailed",
  "ConnectionRefused",
  "ConnectionReset",
  "StaleList",
  "Timeout",
  "Unreachable",
  "UnreadableAnswer",
]);

/** True if the API server, or the way to it, is in trouble: the same call may succeed a little later. */
export function isPassing(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false;
  return error.code === 429 || error.code >= 500 || TROUBLE_ON_THE_WAY.has(error.reason);
}
