/** Asks a gate over HTTP: only where settings allow it, at the address that was looked at, and without following anybody. */
import { promises as dns, type LookupAddress } from "node:dns";
import http from "node:http";
import https from "node:https";
import type { LookupFunction } from "node:net";
import { type GateAnswer, type GateRequest, gateAnswer, no } from "../core/gate/gate.ts";
import type { GateHost } from "../gate-settings.ts";
import { isPublic } from "./addresses.ts";

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

const MOST_BYTES = 65_536;

/** undefined where no host is allowed. What it gives never rejects, and no sentence of it holds more of an address than its host. */
export function gateAsker(hosts: readonly GateHost[], resolve: Resolve = (name) => dns.lookup(name, { all: true })) {
  if (hosts.length === 0) return undefined;
  return async (url: URL, request: GateRequest, timeoutMs: number): Promise<GateAnswer> => {
    const host = hosts.find(({ origin }) => origin === url.origin);
    if (!host) return no(url.host, `may not be asked: GATE_HOSTS does not name ${url.origin}`);
    const timeout = AbortSignal.timeout(timeoutMs);
    return await ask(url, host, { request, resolve, timeout }).catch((error: unknown) =>
      no(url.host, timeout.aborted ? `did not answer within ${timeoutMs / 1000} s` : failureText(error)),
    );
  };
}

interface Asking {
  readonly request: GateRequest;
  readonly resolve: Resolve;
  readonly timeout: AbortSignal;
}

async function ask(url: URL, host: GateHost, { request, resolve, timeout }: Asking): Promise<GateAnswer> {
  const address = await addressOf(url, host, { resolve, timeout });
  if (address === undefined) return no(url.host, "may not be asked: it is in a private network (GATE_HOSTS)");
  const { code, body } = await post(url, JSON.stringify(request), { address, timeout });
  if (body === undefined) return no(url.host, `answered with more than ${MOST_BYTES} bytes`);
  return gateAnswer(url.host, code, body);
}

/** undefined: it has one that is not public, and should have none. */
async function addressOf(
  { hostname }: URL,
  { isPrivate }: GateHost,
  { resolve, timeout }: Pick<Asking, "resolve" | "timeout">,
): Promise<LookupAddress | undefined> {
  const aborted = new Promise<never>((_, reject) => {
    timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
  });
  const addresses = await Promise.race([resolve(hostname.replaceAll(/[[\]]/g, "")), aborted]);
  const isAllowed = isPrivate || addresses.every(({ address }) => isPublic(address));
  return isAllowed ? addresses[0] : undefined;
}

interface Answer {
  readonly code: number;
  /** undefined: too long */
  readonly body: string | undefined;
}

/** A connection of its own, to this address, whatever the name is said to be meanwhile. */
function post(
  url: URL,
  body: string,
  { address, timeout }: { readonly address: LookupAddress; readonly timeout: AbortSignal },
): Promise<Answer> {
  const lookup: LookupFunction = (_name, { all }, callback) =>
    all ? callback(null, [address]) : callback(null, address.address, address.family);
  const headers = {
    "content-type": "application/json",
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

/** By its code: messages of errors may hold addresses. */
function failureText(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "no answer";
  return `cannot be asked: ${code}`;
}
