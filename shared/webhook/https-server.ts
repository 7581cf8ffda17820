/** The webhooks on a port of their own, over TLS unless somebody else ends it. */
import type { X509Certificate } from "node:crypto";
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer, Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Log } from "../log.ts";
import type { Answerer, HttpAnswer, HttpRequest } from "./http.ts";
import { reasonOf, ServerError } from "./server-error.ts";
import { keepRenewed, type Pem, readPems, type TlsFiles } from "./tls-files.ts";

export interface ServerOptions extends TlsFiles {
  /** 0: any free one */
  readonly port: number;
  /** address to listen on; absent: all */
  readonly host?: string;
  /** told when certificates were renewed, or cannot be */
  readonly log?: Log;
  /** how often the files of certificates are looked at */
  readonly rereadMs?: number;
}

export interface WebhookServer {
  readonly port: number;
  /** Takes no more connections; resolves when the requests in flight are answered, or cut off after 10 seconds. */
  close(): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/**
 * API servers keep an idle connection for 90 seconds. Whoever closes it earlier does so, now and then, just when a
 * review is being sent, which fails the request of a user. Source: IdleConnTimeout of Go's DefaultTransport.
 */
const KEEP_ALIVE_MS = 120_000;
const CLOSE_TIMEOUT_MS = 10_000;
const CLOSE_IDLE_EVERY_MS = 50;
const DRAIN_MS = 500;

/** @throws ServerError: the certificate or key is none, or the port cannot be had */
export async function serveHttps(app: Answerer, options: ServerOptions): Promise<WebhookServer> {
  const pem = await readPems(options);
  const server = create(app, options, pem);
  await listen(server, options);
  const stop = pem && server instanceof TlsServer ? keepRenewed(server, pem, options) : () => undefined;
  const end = () => {
    stop();
    return close(server);
  };
  return { port: (server.address() as AddressInfo).port, close: end };
}

function create(app: Answerer, { tlsCert, tlsKey }: ServerOptions, pem: Pem | undefined): Server {
  const timeouts = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const listener = listenerOf(app);
  if (pem === undefined) return createPlainServer(timeouts, listener);
  // Nobody is turned away by TLS: probes and conversions come without a certificate.
  const clients = { requestCert: pem.ca !== undefined, rejectUnauthorized: false };
  try {
    return createServer({ ...pem, ...timeouts, ...clients }, listener);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : cause;
    throw new ServerError(`${tlsCert} and ${tlsKey} are not a certificate and its key in PEM: ${problem}`, { cause });
  }
}

function listenerOf(app: Answerer): RequestListener {
  return async (incoming, outgoing) => {
    answer(incoming, outgoing, await app(toRequest(incoming)));
  };
}

/** Node leaves the body out for HEAD. What is left of a request that was refused is let through, for a while. */
function answer(incoming: IncomingMessage, outgoing: ServerResponse, { status, headers, body }: HttpAnswer): void {
  outgoing.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
  if (incoming.readableEnded) return;
  incoming.on("error", () => undefined).resume();
  const late = setTimeout(() => incoming.socket.destroySoon(), DRAIN_MS);
  incoming.once("close", () => clearTimeout(late));
}

function toRequest(incoming: IncomingMessage): HttpRequest {
  const { method = "GET", url = "/" } = incoming;
  const queryAt = url.indexOf("?");
  return {
    method,
    path: queryAt < 0 ? url : url.slice(0, queryAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1),
    // Only Set-Cookie comes as a list, which no request has a use for.
    headers: incoming.headers as HttpRequest["headers"],
    clientCertificate: () => verifiedCertificate(incoming.socket as TLSSocket),
    readBody: (maxBytes) => readBody(incoming, maxBytes),
  };
}

/** The certificate that the client showed, if one of our authorities signed it. */
function verifiedCertificate(socket: TLSSocket): X509Certificate | undefined {
  return socket.authorized === true ? socket.getPeerX509Certificate() : undefined;
}

function readBody(incoming: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  if (Number(incoming.headers["content-length"]) > maxBytes) return Promise.resolve(undefined);
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else resolve(undefined);
    });
    incoming.on("end", () => atEndOfTurn(() => resolve(textOf(chunks))));
    incoming.on("error", reject);
  });
}

let waiting: (() => void)[] = [];

/**
 * Bodies that end in the same turn of the event loop are decided on side by side, and then answered: with a system call
 * between every two of them each would find the processor's caches cold, which costs it as much again.
 */
function atEndOfTurn(then: () => void): void {
  if (waiting.length === 0) setImmediate(endTurn);
  waiting.push(then);
}

function endTurn(): void {
  const all = waiting;
  waiting = [];
  for (const then of all) then();
}

/** Most bodies come as one piece. */
function textOf(chunks: readonly Buffer[]): string {
  const [first] = chunks;
  return (chunks.length === 1 && first ? first : Buffer.concat(chunks)).toString("utf8");
}

function listen(server: Server, { port, host }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      reject(new ServerError(`port ${port} cannot be had: ${reasonOf(cause)}`, { cause }));
    });
    server.listen({ port, ...(host === undefined ? {} : { host }) }, resolve);
  });
}

/** A connection that was busy when closing began is kept alive by Node afterwards: look for idle ones again and again. */
async function close(server: Server): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const late = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(idle);
  clearTimeout(late);
}
