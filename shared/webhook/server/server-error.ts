/** Why a server cannot start, for the one who started it. */

/** The message is one sentence. */
export class ServerError extends Error {
  override readonly name = "ServerError";
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens on it",
  EACCES: "this user may not",
  ENOENT: "there is no such file",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "the host name cannot be resolved",
};

export function reasonOf({ code = "", message }: NodeJS.ErrnoException): string {
  return REASONS[code] ?? message;
}
