/** Posts over HTTP to a server that is not ours: at the address that was looked at, and without following anybody. */
import { promises as dns, type LookupAddress } from "node:dns";
import http from "node:http";
import https from "node:https";
import type { LookupFunction } from "node:net";
import { mayConnect } from "./addresses.ts";

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

export const resolveName: Resolve = (name) => dns.lookup(name, { all: true });

export const MOST_BYTES = 65_536;

interface Permission {
  /** it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
  /** that says so */
  readonly setting: string;
  /** what it is, in a sentence */
  readonly what: "gate" | "metrics server";
}

/** A text says why none will do. Where one of its addresses will not, none does: nobody knows which comes next. */
export async function addressOf(
  { hostname }: URL,
  { isPrivate, setting, what }: Permission,
  { resolve, timeout }: { readonly resolve: Resolve; readonly timeout: AbortSignal },
): Promise<LookupAddress | string> {
  const aborted = new Promise<never>((_, reject) => {
    timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
  });
  const addresses = await Promise.race([resolve(hostname.replaceAll(/[[\]]/g, "")), aborted]);
  if (addresses.every(({ address }) => mayConnect(address, isPrivate))) return addresses[0] ?? "it has no address";
  return isPrivate ? `it has an address that no ${what} may have` : `it is in a private network (${setting})`;
}

interface Answer {
  readonly code: number;
  /** undefined: too long */
  readonly body: string | undefined;
}

interface Posting {
  readonly address: LookupAddress;
  readonly timeout: AbortSignal;
  /** besides those that say that JSON is sent and accepted, or in their place */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A connection of its own, to this address, whatever the name is said to be meanwhile. */
export function post(url: URL, body: string, { address, timeout, headers: own }: Posting): Promise<Answer> {
  const lookup: LookupFunction = (_name, { all }, callback) =>
    all ? callback(null, [address]) : callback(null, address.address, address.family);
  const headers = {
    "content-type": "application/json",
    ...own,
    accept: "application/json",
    "user-agent": "sidecarset-serverless",
  };
  const options = { method: "POST", headers, lookup, agent: false, signal: timeout } as const;
  return new Promise((resolve, reject) => {
    const start = url.protocol === "http:" ? http.request : https.request;
    const request = start(url, options, (response) => {
      read(response).then((text) => resolve({ code: response.statusCode ?? 0, body: text }), reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function read(response: http.IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
