/** Faults of a call to an API server, one kind at a time. */
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange, ProxiedCall } from "./fault-proxy.ts";

interface Fault {
  /** True for a call that can have this fault. */
  readonly concerns: (call: ProxiedCall) => boolean;
  /** Causes the fault, and resolves after it. */
  readonly strike: (exchange: Exchange) => Promise<void> | void;
  /** The first call of each name has the fault. Later calls have it with a chance of one in this number. */
  readonly oneIn: number;
}

const isWatch = ({ name }: ProxiedCall) => name.startsWith("WATCH ");
const isWrite = ({ name }: ProxiedCall) => /^(CREATE|PATCH|DELETE) /.test(name);
const isNoWatch = (call: ProxiedCall) => !isWatch(call);
const isAny = () => true;

const SLICES = 10;
const SLICE_MS = 60;
const WHOLE_CHUNKS = 6;

/** Refuses the call as an API server does. */
function refuse(code: number, reason: string, message: string, retryAfterSeconds?: number) {
  return ({ outgoing }: Exchange) => {
    const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
    const status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message,
      reason,
      code,
      ...details,
    };
    const retryAfter = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
    outgoing.writeHead(code, { "content-type": "application/json", ...retryAfter }).end(JSON.stringify(status));
  };
}

/** Refuses the call as a load balancer in front of the API server does. */
function refuseAsBalancer({ outgoing }: Exchange, code: number, text: string): void {
  outgoing.writeHead(code, { "content-type": "text/html" }).end(`<html><body><h1>${code} ${text}</h1></body></html>`);
}

function length(body: Buffer) {
  return { "content-length": String(body.length) };
}

async function truncate(exchange: Exchange): Promise<void> {
  const { code, headers, body } = await exchange.carryOut();
  const half = body.subarray(0, Math.floor(body.length / 2));
  exchange.outgoing.writeHead(code, { ...headers, ...length(half) }).end(half);
}

async function dribble(exchange: Exchange): Promise<void> {
  const { code, headers, body } = await exchange.carryOut();
  exchange.outgoing.writeHead(code, { ...headers, ...length(body) });
  const size = Math.ceil(body.length / SLICES);
  for (let slice = 0; slice < SLICES; slice++) {
    exchange.outgoing.write(body.subarray(slice * size, (slice + 1) * size));
    await sleep(SLICE_MS);
  }
  exchange.outgoing.end();
}

/** Sends some events, and then half an event. */
function breakWatch(exchange: Exchange): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = WHOLE_CHUNKS;
  const through = new PassThrough({
    transform(chunk: Buffer, _, done) {
      left -= 1;
      this.push(left >= 0 ? chunk : chunk.subarray(0, Math.floor(chunk.length / 2)));
      if (left < 0) {
        setImmediate(() => exchange.cut());
        resolve();
      }
      done();
    },
  });
  exchange.pass({ through });
  return promise;
}

export const FAULTS = {
  "409": { oneIn: 5, concerns: isWrite, strike: refuse(409, "Conflict", "the object has been modified; apply again") },
  // Each of these faults costs a second.
  "429 with Retry-After": { oneIn: 12, concerns: isAny, strike: refuse(429, "TooManyRequests", "try again later", 1) },
  "500": { oneIn: 5, concerns: isAny, strike: refuse(500, "InternalError", "etcdserver: leader changed") },
  "503": { oneIn: 5, concerns: isAny, strike: (exchange) => refuseAsBalancer(exchange, 503, "Service Unavailable") },
  "504 after it took effect": {
    oneIn: 5,
    concerns: isNoWatch,
    strike: async (exchange) => {
      await exchange.carryOut();
      refuseAsBalancer(exchange, 504, "Gateway Timeout");
    },
  },
  "reset before it took effect": { oneIn: 5, concerns: isAny, strike: (exchange) => exchange.cut() },
  "reset after it took effect": {
    oneIn: 5,
    concerns: isNoWatch,
    strike: async (exchange) => {
      await exchange.carryOut();
      exchange.cut();
    },
  },
  "truncated JSON": { oneIn: 5, concerns: isNoWatch, strike: truncate },
  "slow body": { oneIn: 5, concerns: isNoWatch, strike: dribble },
  "broken watch": { oneIn: 1, concerns: isWatch, strike: breakWatch },
  "410 on continue": {
    oneIn: 5,
    concerns: ({ url }) => url.searchParams.has("continue"),
    strike: refuse(410, "Expired", "The provided continue parameter is too old"),
  },
} as const satisfies Readonly<Record<string, Fault>>;

export type FaultName = keyof typeof FAULTS;

export interface Strikes {
  /** returns the fault that the proxy causes */
  readonly disturb: (exchange: Exchange) => boolean;
  /** call's name → number of faults */
  readonly hits: ReadonlyMap<string, number>;
}

/** Returns the same random numbers in each run. Source: mulberry32. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param oneIn replaces the fault's own chance */
export function strikes(name: FaultName, oneIn: number = FAULTS[name].oneIn): Strikes {
  const fault: Fault = FAULTS[name];
  const random = numbers(1);
  const known = new Set<string>();
  const hits = new Map<string, number>();
  const strike = async (exchange: Exchange) => {
    const { name: call } = exchange.call;
    await fault.strike(exchange);
    hits.set(call, (hits.get(call) ?? 0) + 1);
  };
  const disturb = (exchange: Exchange) => {
    const { call } = exchange;
    if (!fault.concerns(call) || (known.has(call.name) && random() * oneIn >= 1)) return false;
    known.add(call.name);
    strike(exchange).catch(() => exchange.cut());
    return true;
  };
  return { disturb, hits };
}

export function sum(counts: Iterable<number>): number {
  return [...counts].reduce((total, count) => total + count, 0);
}
