/** One HTTP request and its answer as plain values, for any kind of server. */
import type { X509Certificate } from "node:crypto";

export interface HttpRequest {
  readonly method: string;
  /** as sent, not decoded, without the query */
  readonly path: string;
  /** without the question mark */
  readonly query: string;
  /** names in lower case */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The caller's, which the server that ended its TLS found to be signed by the authority that we trust; undefined: none. */
  readonly clientCertificate?: () => X509Certificate | undefined;
  /** False for a body that is too large to be carried back this way; absent: any can be. */
  readonly canCarry?: (body: string) => boolean;
  /** The whole body, read when it is asked for; undefined when it is larger than that many bytes. */
  readonly readBody: (maxBytes: number) => Promise<string | undefined>;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Answers every request; never rejects. */
export type Answerer = (request: HttpRequest) => Promise<HttpAnswer>;

const JSON_HEADERS = { "content-type": "application/json" };

/** An answer in JSON. */
export function jsonAnswer(status: number, value: object, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify(value) };
}

/** An answer in JSON that is printed already. */
export function printedAnswer(body: string): HttpAnswer {
  return { status: 200, headers: JSON_HEADERS, body };
}

/** An answer for people. */
export function textAnswer(status: number, body: string): HttpAnswer {
  return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body };
}

/** The object is at fault then, and not the cluster. */
export const NOT_CARRIED = "larger than the front door of the webhook can carry back";

/** The answer, or an error that it is too large to be carried. */
export function carried({ canCarry }: HttpRequest, answer: HttpAnswer): HttpAnswer {
  if (canCarry?.(answer.body) ?? true) return answer;
  const bytes = Buffer.byteLength(answer.body);
  throw new Error(`the answer of ${bytes} bytes is ${NOT_CARRIED}`);
}

// A bound on how long somebody is kept waiting.

/** The decision is late. Its work continues, but nobody waits for it. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/** The result of `begin`, or a DeadlineError after that many milliseconds. */
export async function within<T>(milliseconds: number, begin: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(`there is no decision after ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([begin(), late]);
  } finally {
    clearTimeout(timer);
  }
}

export function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

// A request that is answered with an HTTP status alone.

/** The request cannot be answered with a review: it carries no uid to answer to, or is no review at all. */
export class ReviewError extends Error {
  override readonly name = "ReviewError";
  /** HTTP status */
  readonly code: 400 | 413 | 415 | 503;
  /** metav1.StatusReason */
  readonly reason: string;

  constructor(message: string, facts: { code?: 413 | 415 | 503; reason?: string; cause?: unknown } = {}) {
    super(message, { cause: facts.cause });
    this.code = facts.code ?? 400;
    this.reason = facts.reason ?? "BadRequest";
  }
}
