/** A bearer token for the API server that is had again before it grows old, and once when it is refused. */
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
 * One reading at a time, shared. A token that can't be had again serves on until it is refused. Rejects as `read` does
 * while there is none.
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
