/** Says in the log that a service account's token is soon over: API servers cut its time short without a word, and nothing else tells before every call is refused. */
import type { Log } from "../log.ts";

const DAY_SECONDS = 86_400;
/** Time enough to look into it, where that is less than a quarter of the whole. */
const MOST_SECONDS = 7 * DAY_SECONDS;

interface Claims {
  /** epoch seconds. Source: RFC 7519, 4.1 */
  readonly iat?: unknown;
  readonly exp?: unknown;
}

/** Empty: it is no JWT. */
function claimsOf(token: string): Claims {
  try {
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) ?? {};
  } catch {
    return {};
  }
}

/** An alarm counts the lines that have this field (infra/aws/alarms.ts). `nowMs`: epoch milliseconds. */
export function logTokenEnd(token: string, nowMs: number, log: Log): void {
  const { iat, exp } = claimsOf(token);
  if (typeof iat !== "number" || typeof exp !== "number") return;
  const leftSeconds = exp - nowMs / 1000;
  if (leftSeconds > Math.min((exp - iat) / 4, MOST_SECONDS)) return;
  const accessEndsAt = new Date(1000 * exp).toISOString();
  log.error("the token by which the API server is called is soon over: put a new one in its place", { accessEndsAt });
}
