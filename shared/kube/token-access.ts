/** The way to an API server with a service account's token that is kept in a file, SSM or Secrets Manager. */
import type { AwsAccess } from "../aws/access.ts";
import { createLog } from "../log.ts";
import type { ClusterSettings } from "../settings/cluster-settings.ts";
import { readText } from "../settings/secret-source.ts";
import { renewableToken } from "./renewable-token.ts";
import { logTokenEnd } from "./token-end.ts";
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
    // Whatever the level of the log: an alarm counts these lines.
    logTokenEnd(text, Date.now(), createLog("error"));
    return text;
  };
  const tokens = renewableToken({ read, freshnessMs: FRESHNESS_MS, now: Date.now });
  await tokens.token();
  return { server, certificateAuthority, ...tokens };
}
