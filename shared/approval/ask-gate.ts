/** Asks a gate over HTTP: at the address that was looked at, and without following anybody. */
import { promises as dns, type LookupAddress } from "node:dns";
import http from "node:http";
import https from "node:https";
import type { LookupFunction } from "node:net";
import { type GateAnswer, type GateRequest, gateAnswer, no } from "../core/rollout/approval.ts";
import type { GateHost } from "../settings/gate-settings.ts";
import { mayConnect } from "./addresses.ts";

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

const resolveName: Resolve = (name) => dns.lookup(name, { all: true });

const MOST_BYTES = 65_536;

export interface Asking {
  readonly request: GateRequest;
  readonly timeout: AbortSignal;
  readonly resolve?: Resolve | undefined;
}

/** Rejects where there is no answer, also when `timeout` is over. */
export async function askGate(url: URL, host: GateHost, asking: Asking): Promise<GateAnswer> {
  const { request, timeout, resolve = resolveName } = asking;
  const address = await addressOf(url, host, { resolve, timeout });
  if (typeof address === "string") return no(url.host, `may not be asked: ${address}`);
  const { code, body } = await post(url, JSON.stringify(request), { address, timeout });
  if (body === undefined) return no(url.host, `answered with more than ${MOST_BYTES} bytes`);
  return gateAnswer(url.host, code, body);
}

/** A text says why none will do. Where one of its addresses will not, none does: nobody knows which comes next. */
async function addressOf(
  { hostname }: URL,
  { isPrivate }: GateHost,
  { resolve, timeout }: Required<Pick<Asking, "timeout">> & { readonly resolve: Resolve },
): Promise<LookupAddress | string> {
  const aborted = new Promise<never>((_, reject) => {
    timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
  });
  const addresses = await Promise.race([resolve(hostname.replaceAll(/[[\]]/g, "")), aborted]);
  if (addresses.every(({ address }) => mayConnect(address, isPrivate))) return addresses[0] ?? "it has no address";
  return isPrivate ? "it has an address that no gate may have" : "it is in a private network (GATE_HOSTS)";
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
