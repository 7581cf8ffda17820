/** The way to an API server with a service account's token that is kept in a file, SSM or Secrets Manager. */
import type { AwsAccess } from "../aws/access.ts";
import { createLog, hideSecret, type Log } from "../log.ts";
import type { ClusterSettings } from "../settings/cluster-settings.ts";
import { readText } from "../settings/secret-source.ts";
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

// A bearer token for the API server that is renewed before it expires, and once when it is refused.

interface RenewableTokenOptions {
  readonly read: () => Promise<string>;
  /** how old a token may be */
  readonly freshnessMs: number;
  /** epoch milliseconds */
  readonly now: () => number;
}

interface Kept {
  readonly token: string;
  readonly begun: number;
}

/**
 * Reads once for all concurrent callers. If renewal fails, the old token stays in use until it is refused. Rejects like
 * `read` while there is no token.
 */
export function renewableToken(options: RenewableTokenOptions): Required<Pick<ClusterAccess, "token" | "renewToken">> {
  const { freshnessMs, now } = options;
  let kept: Kept | undefined;
  let reading: Promise<Kept> | undefined;

  const read = (): Promise<Kept> => {
    reading ??= readToken(options).finally(() => {
      reading = undefined;
    });
    return reading.then((next) => {
      kept = next;
      return next;
    });
  };

  const isFresh = ({ begun }: Kept) => now() - begun >= 0 && now() - begun < freshnessMs;

  return {
    token: async () => {
      if (kept !== undefined && isFresh(kept)) return kept.token;
      const old = kept;
      return (await (old === undefined ? read() : read().catch(() => old))).token;
    },
    renewToken: async (refused) => {
      if (kept !== undefined && kept.token !== refused) return true;
      return (await read().catch(() => kept))?.token !== refused;
    },
  };
}

async function readToken({ read, now }: RenewableTokenOptions): Promise<Kept> {
  const begun = now();
  const token = (await read()).trim();
  hideSecret(token);
  return { token, begun };
}
