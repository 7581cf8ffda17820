/** A bearer token for the API server that is renewed before it expires, and once when it is refused. */
import { hideSecret } from "../log.ts";
import type { ClusterAccess } from "./transport.ts";

export interface RenewableTokenOptions {
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
