/** One HTTP request to one API server, over reused connections. */
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { pipeline, type Readable } from "node:stream";
import type { CallLimits } from "../settings/cluster-settings.ts";
import { type Attempt, connectionFailure, timeoutFailure, unreadableAnswer } from "./failure.ts";

/** The address of an API server and the credentials for it, as in a kubeconfig. */
export interface ClusterAccess {
  /** https://host:port, with a path prefix if there is one */
  readonly server: string;
  /** PEM; absent: the certificate authorities that Node trusts */
  readonly certificateAuthority?: string;
  readonly tlsServerName?: string;
  /** insecure-skip-tls-verify */
  readonly isInsecure?: boolean;
  /** PEM */
  readonly clientCertificate?: string;
  /** PEM */
  readonly clientKey?: string;
  /** proxy-url of a kubeconfig, unchanged; kubeconfig.ts turns it into `proxy` */
  readonly proxyUrl?: string;
  readonly proxy?: Proxy;
  /** A bearer token, asked for before each request. */
  readonly token?: () => Promise<string | undefined>;
  /** Called once after a token was refused (401): true when there is a new one to try. */
  readonly renewToken?: (refused: string | undefined) => Promise<boolean>;
  /** default sidecarset-serverless; the API server's audit log shows it */
  readonly userAgent?: string;
  /** absent: 64 calls at once, and as many a second as come */
  readonly limits?: CallLimits;
  /** until the whole answer is there; default 30,000 */
  readonly requestTimeoutMs?: number;
  /** Called after every HTTP request, also a failed one. */
  readonly onRequest?: (request: RequestRecord) => void;
}

/** The proxy for all connections to an API server. */
interface Proxy {
  /** its address without its password, and its source */
  readonly name: string;
  readonly openAgent: (options: https.AgentOptions) => http.Agent;
}

/** The summary of a request for metrics: "PATCH pods", 200, 12 ms. */
export interface RequestRecord {
  readonly verb: "GET" | "LIST" | "WATCH" | "CREATE" | "PATCH" | "DELETE";
  /** plural, with the subresource: "pods", "pods/status" */
  readonly resource: string;
  /** 0: no answer */
  readonly code: number;
  readonly ms: number;
  /** of the answer's body, as they came over the wire */
  readonly bytes: number;
}

export interface OutgoingRequest {
  readonly method: string;
  /** below the server's own path, with the query */
  readonly path: string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface IncomingAnswer {
  readonly attempt: Attempt;
  readonly code: number;
  readonly retryAfter: string | undefined;
  /** the API server's clock, as HTTP writes it */
  readonly date: string | undefined;
  /** paused */
  readonly body: Readable;
  /** bytes that came over the wire so far */
  readonly bytes: () => number;
}

export type Transport = (request: OutgoingRequest) => Promise<IncomingAnswer>;

const MAX_SOCKETS = 64;

/** Connections open on demand and stay open; they do not keep the process alive. */
export function openTransport(access: ClusterAccess): Transport {
  const base = new URL(access.server);
  const isPlain = base.protocol === "http:";
  const options = { keepAlive: true, maxSockets: MAX_SOCKETS, scheduling: "lifo" as const };
  const all = { ...options, ...(isPlain ? {} : tlsOptions(access)) };
  const agent = access.proxy?.openAgent(all) ?? (isPlain ? new http.Agent(all) : new https.Agent(all));
  const way = { access, agent, start: isPlain ? http.request : https.request, connected: new WeakSet<Socket>() };
  return async (outgoing) => {
    const url = new URL(base.pathname.replace(/\/$/, "") + outgoing.path, base);
    try {
      const token = await access.token?.();
      const answer = await send(outgoing, url, way, token);
      if (answer.code !== 401 || !(await access.renewToken?.(token))) return answer;
      // A request that failed authentication changed nothing, so even a write may be sent again.
      answer.body.resume();
      return await send(outgoing, url, way, await access.token?.());
    } catch (cause) {
      throw connectionFailure(cause, { method: outgoing.method, url, isSent: false, proxy: access.proxy?.name });
    }
  };
}

function tlsOptions(access: ClusterAccess): https.AgentOptions {
  return {
    ...(access.certificateAuthority === undefined ? {} : { ca: access.certificateAuthority }),
    ...(access.tlsServerName === undefined ? {} : { servername: access.tlsServerName }),
    ...(access.clientCertificate === undefined ? {} : { cert: access.clientCertificate }),
    ...(access.clientKey === undefined ? {} : { key: access.clientKey }),
    rejectUnauthorized: !access.isInsecure,
  };
}

function headersFor(
  outgoing: OutgoingRequest,
  access: ClusterAccess,
  token: string | undefined,
): Record<string, string> {
  return {
    "User-Agent": access.userAgent ?? "sidecarset-serverless",
    Accept: outgoing.accept ?? "application/json",
    ...(outgoing.method === "GET" ? { "Accept-Encoding": "gzip" } : {}),
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
    ...(outgoing.body === undefined
      ? {}
      : {
          "Content-Type": outgoing.contentType ?? "application/json",
          "Content-Length": String(Buffer.byteLength(outgoing.body)),
        }),
  };
}

interface Way {
  readonly access: ClusterAccess;
  readonly agent: http.Agent;
  readonly start: typeof http.request;
  /** Node does not call a connection reused if it passes it from one request to a waiting one. */
  readonly connected: WeakSet<Socket>;
}

function send(outgoing: OutgoingRequest, url: URL, way: Way, token: string | undefined): Promise<IncomingAnswer> {
  const { access, agent, start, connected } = way;
  const { method, signal, timeoutMs } = outgoing;
  const proxy = access.proxy?.name;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingAnswer>();
  const request = start(url, { method, agent, headers: headersFor(outgoing, access, token) });
  let isSent = false;
  const attempt = () => ({ method, url, isSent, proxy });
  let answer: http.IncomingMessage | undefined;
  // An answer that has arrived but is unread: Node would report its error to the connection, where nobody listens.
  const end = (cause: Error) => {
    // A request that waits for a connection would say so only when it has got one.
    reject(connectionFailure(cause, attempt()));
    (answer ?? request).destroy(cause);
  };
  const abort = () => end(new Error("aborted by the caller"));
  const timer = setTimeout(() => end(timeoutFailure(attempt(), timeoutMs)), timeoutMs);
  request.on("socket", (socket) => {
    // Node hands over a tunnel through a proxy after the handshake.
    isSent = connected.has(socket) || (proxy !== undefined && url.protocol === "https:");
    if (isSent) return;
    socket.once(url.protocol === "http:" ? "connect" : "secureConnect", () => {
      connected.add(socket);
      isSent = true;
    });
  });
  request.on("error", (error) => reject(connectionFailure(error, attempt())));
  request.on("close", () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
  request.on("response", (response) => {
    answer = response;
    resolve(incoming(response, attempt()));
  });
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted) abort();
  request.end(outgoing.body);
  return promise;
}

/**
 * Buffer size for decompression: API servers compress longer answers than half of this. With zlib's 16 KB, a list takes
 * a tenth more computing, because each buffer takes a turn of its thread.
 */
const UNZIPPED_AT_ONCE = 256 * 1024;

/** Loads zlib when an answer is compressed, which a short one never is. */
function incoming(response: http.IncomingMessage, attempt: Attempt): IncomingAnswer {
  let bytes = 0;
  // Nothing flows, and nothing ends, before `body` is read.
  response.pause().on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  let body: Readable = response;
  if (response.headers["content-encoding"] === "gzip") {
    const gunzip = process.getBuiltinModule("node:zlib").createGunzip({ chunkSize: UNZIPPED_AT_ONCE });
    // Either stream's end ends the other; the reader of `body` sees the error.
    body = pipeline(response, gunzip, () => undefined);
  }
  return {
    attempt,
    code: response.statusCode ?? 0,
    retryAfter: response.headers["retry-after"],
    date: response.headers.date,
    body,
    bytes: () => bytes,
  };
}

/** Limit of bytes in a refusal: an API server passes on a webhook's text of any length. */
const MOST_OF_REFUSAL = 262_144;
/** Limit of characters for one object of a watch, or bytes for one of a list; etcd stores objects of 1.5 MB. */
export const MOST_OF_OBJECT = 16 * 1024 * 1024;
/** Limit of bytes for an answer that is read as a whole: pages of lists have 500 objects. */
const MOST_OF_ANSWER = 64 * 1024 * 1024;

/** The whole body, or the beginning of a long refusal, or a KubeError when the connection ends before it does. Its events come cheaper than an iterator. */
export function readBody(answer: IncomingAnswer): Promise<string> {
  const chunks: Buffer[] = [];
  let left = answer.code >= 400 ? MOST_OF_REFUSAL : MOST_OF_ANSWER;
  return new Promise((resolve, reject) => {
    const fail = (cause?: unknown) =>
      reject(unreadableAnswer(answer.attempt, answer.code, "ends in the middle", cause));
    const end = () => resolve(Buffer.concat(chunks).toString());
    const take = (chunk: Buffer) => {
      chunks.push(chunk);
      left -= chunk.length;
      if (left >= 0) return;
      if (answer.code >= 400) end();
      else reject(unreadableAnswer(answer.attempt, answer.code, `is longer than ${MOST_OF_ANSWER} bytes`));
      answer.body.destroy();
    };
    // The time may have ended before it was read, during the renewal of the token.
    if (answer.body.destroyed) return fail();
    answer.body
      .on("data", take)
      .on("end", end)
      .on("error", fail)
      .on("close", () => answer.body.readableEnded || fail())
      .resume();
  });
}
