/** The way to an API server with a service account's token that is kept in a file, SSM or Secrets Manager. */
import type { AwsAccess } from "../aws/access.ts";
import { createLog, type Log } from "../log.ts";
import type { ClusterSettings } from "../settings/cluster-settings.ts";
import { readText } from "../settings/secret-source.ts";
import { renewableToken } from "./renewable-token.ts";
import type { ClusterAccess } from "./transport.ts";

/** A token that was replaced works after this long; sooner when the old one is refused. */
const FRESHNESS_MS = 5 * 60_000;

/** @throws SecretError or AwsError when the token can't be had */
export async function tokenAccess(
  { server, certificateAuthority, token }: Extract<ClusterSettings, { readonly kind: "token" }>,
  aws: () => AwsAccess,
): Promise<ClusterAccess> {
  const read = async () => {
    const text = (await readText(token, aws)).trim();
    // The log level does not matter: an alarm counts these lines. They are no errors, which another alarm counts.
    logTokenEnd(text, Date.now(), createLog("warn"));
    return text;
  };
  const tokens = renewableToken({ read, freshnessMs: FRESHNESS_MS, now: Date.now });
  await tokens.token();
  return { server, certificateAuthority, ...tokens };
}

// Warns in the log before a service account's token expires: API servers shorten its time silently, and otherwise every
// call would fail without notice.

const DAY_SECONDS = 86_400;
/** The longest warning time, unless a quarter of the lifetime is less. */
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
  log.warn("the token by which the API server is called is soon over: put a new one in its place", { accessEndsAt });
}
