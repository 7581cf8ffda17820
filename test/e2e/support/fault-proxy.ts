/** An HTTPS proxy between our functions and an API server. It can cause every fault of networks and servers. */
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { PassThrough, pipeline } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { createCertificates } from "../../../infra/local/http/https-server.ts";
import type { RawTarget } from "../../contract/raw.ts";

export interface ProxiedCall {
  /** verb and resource, such as "LIST sidecarsets", "WATCH pods", "PATCH sidecarsets/status" */
  readonly name: string;
  readonly url: URL;
  /** the bearer token */
  readonly token: string;
  readonly body: string;
}

interface Carried {
  readonly code: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A call, and the ways to end it. Exactly one of them must be called. */
export interface Exchange {
  readonly call: ProxiedCall;
  /** The response to the client. */
  readonly outgoing: ServerResponse;
  /**
   * Sends the call to the API server and reads the whole answer, which the client does not get. Rejects if there is no
   * answer.
   */
  carryOut(): Promise<Carried>;
  /** Ends the exchange: each side gets the other side's bytes as they come. */
  pass(change?: { readonly token?: string; readonly through?: PassThrough }): void;
  /** Ends the exchange: the connection breaks. */
  cut(): void;
}

/** Returns true if it ends the exchange. */
type Disturb = (exchange: Exchange) => boolean;

export interface FaultProxy {
  /** Returns the same API server and identity through the proxy. */
  route(target: RawTarget): RawTarget;
  /** Disturbs all later calls; undefined: all calls pass. */
  disturb(disturb: Disturb | undefined): void;
  /** returns the number of calls so far */
  readonly calls: () => number;
  close(): Promise<void>;
}

const VERBS: Readonly<Record<string, string>> = { POST: "CREATE", PATCH: "PATCH", DELETE: "DELETE" };
/** Headers of a single connection. */
const HOP_BY_HOP = ["connection", "host", "keep-alive", "transfer-encoding"];

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
}

/** Names a call: /api/v1/namespaces/shop/pods/a/status → PATCH pods/status */
function nameOf(method: string, { pathname, searchParams }: URL): string {
  const path = pathname.replace(/^\/(api|apis\/[^/]+)\/[^/]+\//, "").replace(/^namespaces\/[^/]+\/(?=.)/, "");
  const [plural = "", name, subresource] = path.split("/");
  const isWatch = searchParams.get("watch") === "true";
  const read = isWatch ? "WATCH" : name === undefined ? "LIST" : "GET";
  return `${VERBS[method] ?? read} ${plural}${subresource === undefined ? "" : `/${subresource}`}`;
}

class ProxiedExchange implements Exchange {
  readonly call: ProxiedCall;
  readonly outgoing: ServerResponse;
  readonly #incoming: IncomingMessage;
  readonly #target: RawTarget;
  readonly #agent: Agent;

  constructor(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    body: string,
    to: { target: RawTarget; agent: Agent },
  ) {
    const url = new URL(incoming.url ?? "/", to.target.url);
    const token = (incoming.headers.authorization ?? "").replace(/^Bearer /, "");
    this.call = { name: nameOf(incoming.method ?? "GET", url), url, token, body };
    this.outgoing = outgoing;
    this.#incoming = incoming;
    this.#target = to.target;
    this.#agent = to.agent;
  }

  #send(change: IncomingHttpHeaders) {
    const { url, body } = this.call;
    const headers = { ...endToEnd(this.#incoming.headers), ...change };
    const { caCertificate: ca } = this.#target;
    const sent = request(url, { method: this.#incoming.method, headers, ca, agent: this.#agent });
    sent.end(body === "" ? undefined : body);
    return sent;
  }

  async carryOut(): Promise<Carried> {
    const sent = this.#send({ "accept-encoding": "identity" });
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    return { code: answer.statusCode ?? 0, headers: endToEnd(answer.headers), body: await buffer(answer) };
  }

  pass({ token, through = new PassThrough() }: { token?: string; through?: PassThrough } = {}): void {
    const sent = this.#send(token === undefined ? {} : { authorization: `Bearer ${token}` });
    let isOver = false;
    sent.on("error", () => this.cut());
    sent.on("response", (answer) => {
      this.outgoing.writeHead(answer.statusCode ?? 0, endToEnd(answer.headers));
      this.outgoing.flushHeaders();
      pipeline(answer, through, this.outgoing, () => {
        isOver = true;
      });
    });
    this.outgoing.on("close", () => {
      if (!isOver) sent.destroy();
    });
  }

  cut(): void {
    this.outgoing.destroy();
  }
}

export async function startFaultProxy(target: RawTarget): Promise<FaultProxy> {
  const { authority, certificate, key } = await createCertificates();
  const agent = new Agent({ keepAlive: true });
  let disturb: Disturb | undefined;
  let calls = 0;
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const exchange = new ProxiedExchange(incoming, outgoing, await text(incoming), { target, agent });
    calls += 1;
    if (disturb?.(exchange) !== true) exchange.pass();
  };
  const server = createServer({ key, cert: certificate }, (incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.requestTimeout = 0;
  server.keepAliveTimeout = 90_000;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    route: ({ token }) => ({ url: `https://127.0.0.1:${port}`, caCertificate: authority, token }),
    disturb: (next) => {
      disturb = next;
    },
    calls: () => calls,
    close: async () => {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
      agent.destroy();
    },
  };
}
