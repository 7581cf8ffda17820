/** A request that is answered with an HTTP status alone. */

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
