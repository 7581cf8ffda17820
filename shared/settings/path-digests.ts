/**
 * PATH_DIGESTS: digests by which a function recognizes the secrets of its paths without reading any. So many new
 * processes at once ask nothing of AWS. `sidecarset path-secrets --digests` prints it.
 */
import { ConfigError } from "./config-error.ts";

/** Digests of the valid secrets by path: the new one and the old one. */
export type PathDigests = ReadonlyMap<string, readonly string[]>;

const ENTRY = /^(\/[^\s=]*)=([A-Za-z0-9_-]{43}(?:,[A-Za-z0-9_-]{43})?)$/;

/** Parses the form `/mutate-pod=DIGEST /convert=DIGEST,DIGEST`. @throws ConfigError naming `what` */
export function parsePathDigests(what: string, text: string): PathDigests {
  const entries = text.split(/\s+/).filter(Boolean);
  return new Map(
    entries.map((entry) => {
      const [, path = "", digests = ""] = ENTRY.exec(entry) ?? [];
      if (path !== "") return [path, digests.split(",")];
      throw new ConfigError(
        `${what} has ${JSON.stringify(entry)}, which is not PATH=DIGEST with one digest or two: take what sidecarset path-secrets --digests prints.`,
      );
    }),
  );
}

export function printPathDigests(digests: PathDigests): string {
  return [...digests].map(([path, those]) => `${path}=${those.join(",")}`).join(" ");
}
