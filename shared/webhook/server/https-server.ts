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
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { type Log, rateLimited } from "../../log.ts";
import { type Answerer, type HttpAnswer, type HttpRequest, textAnswer } from "./http.ts";
import { readBody } from "./http-body.ts";
import { keepRenewed, type Pem, readPems, reasonOf, ServerError, type TlsFiles } from "./tls-files.ts";

/**
 * Limit of an answer in base64, for a patch of 3 MiB: no API server stores an object that grows by more. Many such
 * answers fill the memory.
 */
const MOST_ANSWERED = 4 * 1024 * 1024;

export interface ServerOptions extends TlsFiles {
  /** 0: any free one */
  readonly port: number;
  /** address to listen on; absent: all */
  readonly host?: string;
  /** told when certificates are renewed, or cannot be */
  readonly log?: Log;
  /** how often the files of certificates are looked at */
  readonly rereadMs?: number;
  /** limit of connections; absent: 2,000 */
  readonly maxConnections?: number;
}

export interface WebhookServer {
  readonly port: number;
  /** Accepts no more connections; resolves when running requests are answered, or cut off after 10 seconds. */
  close(): Promise<void>;
}

/** Limits for headers and TLS handshakes: a slower client is disconnected. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Interval at which Node checks the timeouts; its default is half a minute. */
const TIMEOUTS_EVERY_MS = 1_000;
/** Limit of unanswered requests per connection. */
const MOST_UNANSWERED = 16;
/** API servers open one connection for each concurrent review. */
const MAX_CONNECTIONS = 2_000;
/** Connections beyond the limit, so that a new one is seen before an older one is closed for it. */
const SPARE_CONNECTIONS = 200;
/**
 * API servers keep an idle connection for 90 seconds. A server that closes earlier sometimes closes while a review is
 * being sent, which fails a user's request. Source: IdleConnTimeout of Go's DefaultTransport.
 */
const KEEP_ALIVE_MS = 120_000;
const CLOSE_TIMEOUT_MS = 10_000;
const CLOSE_IDLE_EVERY_MS = 50;
const DRAIN_MS = 500;

/** @throws ServerError: the certificate or key is invalid, or the port cannot be used */
export async function serveHttps(app: Answerer, options: ServerOptions): Promise<WebhookServer> {
  const pem = await readPems(options);
  const { maxConnections = MAX_CONNECTIONS } = options;
  const shares = new ConnectionShares(maxConnections);
  const server = refuseTunnels(create(app, options, { pem, shares }));
  server.maxConnections = maxConnections + SPARE_CONNECTIONS;
  server.on("connection", (socket: Socket) => shares.add(socket));
  await listen(server, options);
  const stop = pem && server instanceof TlsServer ? keepRenewed(server, pem, options) : () => undefined;
  const end = () => {
    stop();
    return close(server);
  };
  return { port: (server.address() as AddressInfo).port, close: end };
}

interface Parts {
  readonly pem: Pem | undefined;
  readonly shares: ConnectionShares;
}

function create(app: Answerer, { tlsCert, tlsKey, log }: ServerOptions, { pem, shares }: Parts): Server {
  const timeouts = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: TIMEOUTS_EVERY_MS,
  };
  const listener = listenerOf(app, log, shares);
  if (pem === undefined) return createPlainServer(timeouts, listener);
  // TLS refuses nobody: probes and conversions come without a certificate.
  const clients = { requestCert: pem.ca !== undefined, rejectUnauthorized: false };
  try {
    return createServer({ ...pem, ...timeouts, ...clients, handshakeTimeout: HEADERS_TIMEOUT_MS }, listener);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : cause;
    throw new ServerError(`${tlsCert} and ${tlsKey} are not a certificate and its key in PEM: ${problem}`, { cause });
  }
}

/** Contains all errors of a request: neither the process nor another request is affected. */
function listenerOf(app: Answerer, log: Log | undefined, shares: ConnectionShares): RequestListener {
  const sayFailed = rateLimited<unknown>((requests, error) => log?.error("request failed", { requests, error }));
  const unanswered = new WeakMap<Socket, number>();
  const count = (socket: Socket, change: 1 | -1) => {
    const next = (unanswered.get(socket) ?? 0) + change;
    unanswered.set(socket, next);
    return next;
  };
  return async (incoming, outgoing) => {
    const { socket } = incoming;
    outgoing.once("close", () => count(socket, -1));
    // API servers and browsers wait for an answer before the next request on a connection.
    if (count(socket, 1) > MOST_UNANSWERED) return void socket.destroy();
    try {
      const { method = "", url = "" } = incoming;
      const answered = targetRefusal(method, url) ?? (await app(toRequest(incoming, outgoing)));
      // Answers to strangers end their connection.
      if (answered.headers["connection"] !== "close") shares.prove(socket);
      answer(incoming, outgoing, answered);
    } catch (error) {
      sayFailed(error);
      socket.destroy();
    }
  };
}

/** Node would close the connection without an answer. */
function refuseTunnels(server: Server): Server {
  return server.on("connect", (_, socket) => {
    socket.on("error", () => undefined);
    socket.end("HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  });
}

/**
 * Writes the answer. Node omits the body for HEAD. The rest of a refused request is read for a while, and the answer
 * ends after it. Node closes the connection at the end of the answer, and later data would reset it.
 */
function answer(incoming: IncomingMessage, outgoing: ServerResponse, { status, headers, body }: HttpAnswer): void {
  outgoing.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  if (incoming.complete) outgoing.end(body);
  else outgoing.write(body);
  if (incoming.readableEnded) return;
  const late = setTimeout(() => incoming.socket.destroySoon(), DRAIN_MS);
  incoming
    .on("error", () => undefined)
    .once("end", () => outgoing.end())
    .once("close", () => clearTimeout(late))
    .resume();
}

function toRequest(incoming: IncomingMessage, outgoing: ServerResponse): HttpRequest {
  const { method = "GET", url = "/" } = incoming;
  const queryAt = url.indexOf("?");
  return {
    method,
    path: queryAt < 0 ? url : url.slice(0, queryAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1),
    // Only Set-Cookie is a list, which no request needs.
    headers: incoming.headers as HttpRequest["headers"],
    clientCertificate: () => verifiedCertificate(incoming.socket as TLSSocket),
    canCarry: (text) => text.length <= MOST_ANSWERED,
    readBody: (maxBytes) => readBody(incoming, outgoing, maxBytes),
  };
}

/** The certificate that the client showed, if one of our authorities signed it. */
function verifiedCertificate(socket: TLSSocket): X509Certificate | undefined {
  return socket.authorized === true ? socket.getPeerX509Certificate() : undefined;
}

function listen(server: Server, { port, host }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      reject(new ServerError(`port ${port} cannot be had: ${reasonOf(cause)}`, { cause }));
    });
    server.listen({ port, ...(host === undefined ? {} : { host }) }, resolve);
  });
}

/** Node keeps a connection alive that was busy when closing began: the loop closes idle ones again and again. */
async function close(server: Server): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const late = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(idle);
  clearTimeout(late);
}

/** Tells which requests no port answers, before authentication. */
const METHODS = ["GET", "HEAD", "POST"];
const ALLOW = METHODS.join(", ");
/** Limit of a request's target: a secret, a path and a timeout. Names have at most 253 characters. */
const MAX_TARGET = 2_048;

/** Undefined: it may be answered. `target` as it was sent. */
export function targetRefusal(method: string, target: string): HttpAnswer | undefined {
  if (!METHODS.includes(method)) return refused(405, `only ${ALLOW} are answered here`, { allow: ALLOW });
  if (target.length > MAX_TARGET) return refused(414, `the address is longer than ${MAX_TARGET} characters`);
  if (!target.startsWith("/")) return refused(400, "the address does not begin with /");
  return isEscapedRight(target) ? undefined : refused(400, "the address has a % that is no escape");
}

/** The connection is not used again: what follows may be anything. */
function refused(status: number, why: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  const answer = textAnswer(status, why);
  return { ...answer, headers: { ...answer.headers, ...headers, connection: "close" } };
}

function isEscapedRight(target: string): boolean {
  if (!target.includes("%")) return true;
  try {
    decodeURIComponent(target);
    return true;
  } catch {
    return false;
  }
}

// Shares the connections of a port: one stranger with many connections does not block others.

interface Connection {
  readonly socket: Pick<Socket, "destroy">;
  readonly address: string;
}

/**
 * Beyond `most`, closes the oldest connection of the address with the most. An authenticated connection stays; an API
 * server behind a stranger's address keeps its own.
 */
export class ConnectionShares {
  readonly #most: number;
  /** by remote address and port */
  readonly #open = new Map<string, Connection>();
  /** by remote address: keys of unauthenticated connections, oldest first */
  readonly #unproven = new Map<string, Set<string>>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    const { remoteAddress = "", remotePort = 0 } = socket;
    const [key, address] = [keyOf(socket), addressShare(remoteAddress)];
    // The socket was closed before it reached us.
    if (remotePort === 0) return void socket.destroy();
    this.#open.set(key, { socket, address });
    const ofAddress = this.#unproven.get(address) ?? new Set();
    this.#unproven.set(address, ofAddress.add(key));
    socket.once("close", () => this.#remove(key));
    if (this.#open.size > this.#most) this.#closeOne();
  }

  /** Marks the connection as authenticated. */
  prove(socket: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const connection = this.#open.get(keyOf(socket));
    if (connection) this.#forget(keyOf(socket), connection.address);
  }

  #closeOne(): void {
    const [first, ...others] = this.#unproven.values();
    if (first === undefined) return;
    const largest = others.reduce((most, one) => (one.size > most.size ? one : most), first);
    const [oldest = ""] = largest;
    const connection = this.#open.get(oldest);
    this.#remove(oldest);
    connection?.socket.destroy();
  }

  #remove(key: string): void {
    const connection = this.#open.get(key);
    if (connection) this.#forget(key, connection.address);
    this.#open.delete(key);
  }

  #forget(key: string, address: string): void {
    const ofAddress = this.#unproven.get(address);
    ofAddress?.delete(key);
    if (ofAddress?.size === 0) this.#unproven.delete(address);
  }
}

function keyOf({ remoteAddress = "", remotePort = 0 }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}

const GROUPS = 8;

/** An IPv4 address, or the 64-bit network of an IPv6 address, because one owner has all addresses of it. */
export function addressShare(address: string): string {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [head = "", tail = ""] = address.split("::");
  const groupsOf = (text: string) => (text === "" ? [] : text.split(":"));
  const [before, after] = [groupsOf(head), groupsOf(tail)];
  const zeros = address.includes("::") ? GROUPS - before.length - after.length : 0;
  return [...before, ...Array.from({ length: Math.max(0, zeros) }, () => "0"), ...after].slice(0, 4).join(":");
}
