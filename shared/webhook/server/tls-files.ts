/** The files of a server's certificates: read at the start, and again when somebody renews them. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Server } from "node:https";
import type { Log } from "../../log.ts";

export interface TlsFiles {
  /** path of a PEM file: the certificate with its chain; absent: plain HTTP, behind an ingress that ends TLS */
  readonly tlsCert?: string;
  /** path of a PEM file; goes with the certificate */
  readonly tlsKey?: string;
  /** path of a PEM file: the authority for clients' certificates; absent: no certificate counts */
  readonly clientCa?: string;
}

export interface Pem {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

const REREAD_MS = 10_000;

/** @throws ServerError for an unreadable file, or an invalid authority */
export async function readPems({ tlsCert, tlsKey, clientCa }: TlsFiles): Promise<Pem | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const ca = clientCa === undefined ? {} : { ca: await readAuthority(clientCa) };
  return { cert: await readPem(tlsCert), key: await readPem(tlsKey), ...ca };
}

/** Node would take an empty list of authorities without a word. */
async function readAuthority(path: string): Promise<string> {
  const pem = await readPem(path);
  try {
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    throw new ServerError(`${path} is not a certificate in PEM`, { cause });
  }
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new ServerError(`${path} cannot be read: ${reasonOf(cause as NodeJS.ErrnoException)}`, { cause });
  }
}

export interface RenewalOptions extends TlsFiles {
  readonly log?: Log;
  readonly rereadMs?: number;
}

/**
 * New connections get the new certificate, open ones keep theirs. A certificate and key that do not match (yet) change
 * nothing. It compares contents, not times: files of a Secret are links that switch. Returns a function that stops it.
 */
export function keepRenewed(server: Server, first: Pem, options: RenewalOptions): () => void {
  const { log, rereadMs = REREAD_MS } = options;
  let [current, trouble] = [JSON.stringify(first), ""];
  const reread = async () => {
    try {
      const pem = await readPems(options);
      const text = JSON.stringify(pem);
      if (pem !== undefined && text !== current) {
        server.setSecureContext(pem);
        current = text;
        log?.info("the certificates of this server were renewed");
      }
      trouble = "";
    } catch (error) {
      const message = (error as Error).message;
      if (message !== trouble)
        log?.warn("renewed certificates cannot be used, the ones before are", { error: message });
      trouble = message;
    }
  };
  let isReading = false;
  const timer = setInterval(async () => {
    // An older look that ends after a newer one would restore old content.
    if (isReading) return;
    isReading = true;
    await reread();
    isReading = false;
  }, rereadMs).unref();
  return () => clearInterval(timer);
}

// Why a server cannot start, for the one who started it.

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
