/** A test API server on loopback, and the connection to it, with every possible fault of a request or its answer. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Patch, PODS, type Resource, SIDECARSETS } from "../../../shared/kube/port.ts";
import { type ApiServer, callOf, type Eviction } from "../api-server.ts";
import type { Chance } from "../chance.ts";
import { sendParts } from "./send-parts.ts";
import { WatchDoor, type WatchFate } from "./watch-door.ts";

export const FATES = [
  "reset before it arrived",
  "answer lost",
  "answer cut",
  "throttled",
  "500",
  "503, carried out",
  "page of a proxy",
  "404 of a proxy",
  "answer that is no JSON",
  "redirect",
] as const;
export type Fate = (typeof FATES)[number];

/** A request that arrived, and the fault it met. */
export interface Arrival {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly accept: string;
  readonly body: unknown;
  readonly atMs: number;
  fate?: Fate;
  /** the API server's answer; absent: the API server did not get the request */
  answer?: Answer;
  /** the seconds that the answer's Retry-After names */
  retryAfter?: number;
  watch?: WatchFate;
}

export interface Answer {
  readonly code: number;
  readonly body: unknown;
}

interface DoorOptions {
  readonly server: ApiServer;
  readonly chance: Chance;
  /** share of requests that meet a fault */
  readonly rate: number;
}

const TYPES: Readonly<Record<string, Patch["type"]>> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
};
const WRITER = "client";

export class Door {
  readonly arrivals: Arrival[] = [];
  readonly #options: DoorOptions;
  readonly #http: http.Server;
  readonly #watches: WatchDoor;

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#watches = new WatchDoor(options);
    this.#http = http.createServer((request, response) => void this.#receive(request, response));
  }

  /** Resolves with the server's address. */
  open(): Promise<string> {
    return new Promise((resolve) =>
      this.#http.listen(0, "127.0.0.1", () =>
        resolve(`http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`),
      ),
    );
  }

  close(): Promise<void> {
    this.#http.closeAllConnections();
    return new Promise((resolve) => this.#http.close(() => resolve()));
  }

  async #receive(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const arrival = await arrivalOf(request);
    this.arrivals.push(arrival);
    const { chance, rate } = this.#options;
    if (arrival.query["watch"] === "true") return this.#watches.serve(arrival, response);
    const fate = chance.isLucky(rate) ? chance.pick(FATES) : undefined;
    if (fate) arrival.fate = fate;
    const isAsked = fate === undefined || ASKED.has(fate);
    if (isAsked) arrival.answer = await this.#ask(arrival);
    if (fate) this.#meet(fate, arrival, response);
    else await this.#send(arrival.answer as Answer, request, response);
  }

  #meet(fate: Fate, arrival: Arrival, response: http.ServerResponse): void {
    const { chance } = this.#options;
    // Most answers allow a retry at once, so that a run does not take hours.
    arrival.retryAfter = chance.isLucky(0.01) ? 1 : 0;
    const wait = { "Retry-After": String(arrival.retryAfter) };
    const text = JSON.stringify(arrival.answer?.body ?? {});
    if (fate === "reset before it arrived" || fate === "answer lost") response.socket?.destroy();
    else if (fate === "answer cut") {
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": text.length + 10, ...wait });
      response.write(text.slice(0, Math.max(1, chance.below(text.length))), () => response.socket?.destroy());
    } else if (fate === "page of a proxy") response.writeHead(502, wait).end("<html><h1>502 Bad Gateway</h1></html>");
    else if (fate === "404 of a proxy") response.writeHead(404, wait).end("404 page not found\n");
    else if (fate === "answer that is no JSON") response.writeHead(200, wait).end("<html>Please log in</html>");
    else if (fate === "redirect") response.writeHead(302, { Location: "https://login.example.com", ...wait }).end();
    else refuse(response, STATUSES[fate], wait);
  }

  /** Sends the answer in parts, which may end inside a character. Some answers are compressed. */
  async #send({ code, body }: Answer, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { chance } = this.#options;
    const isZipped = /gzip/.test(String(request.headers["accept-encoding"])) && chance.isLucky(0.3);
    const bytes = isZipped ? gzipSync(JSON.stringify(body)) : Buffer.from(JSON.stringify(body));
    response.writeHead(code, {
      "Content-Type": "application/json",
      ...(isZipped ? { "Content-Encoding": "gzip" } : {}),
    });
    await sendParts(response, bytes, chance);
    response.end();
  }

  async #ask(arrival: Arrival): Promise<Answer> {
    try {
      const body = await this.#answer(arrival);
      return { code: arrival.method === "POST" ? 201 : 200, body: JSON.parse(JSON.stringify(body)) };
    } catch (error) {
      if (error instanceof URIError) return { code: 400, body: `the path ${arrival.path} is none` };
      if (!isKubeError(error)) throw error;
      const { code, reason, message } = error;
      return { code, body: { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message } };
    }
  }

  #answer(arrival: Arrival): Promise<unknown> {
    const { method, path, query, body } = arrival;
    const { server } = this.#options;
    const { resource, key, subresource } = placeOf(path);
    if (method === "GET" && key.name !== "") return server.get(WRITER, resource, key);
    if (method === "GET") return this.#list(resource, key, query);
    if (method === "POST" && subresource === "eviction") return server.evict(WRITER, body as Eviction);
    if (method === "POST") return server.create(WRITER, resource, body as KubernetesObject, query["dryRun"] === "All");
    return method === "DELETE" ? this.#delete(resource, key, body as DeletionBody) : this.#patch(arrival);
  }

  #list(resource: Resource, { namespace }: { readonly namespace?: string }, query: Arrival["query"]): Promise<unknown> {
    const { limit, ...rest } = query;
    const place = namespace === undefined ? {} : { namespace };
    return this.#options.server.list(WRITER, resource, {
      ...(rest as object),
      ...place,
      ...(limit === undefined ? {} : { limit: Number(limit) }),
    });
  }

  #patch({ path, query, contentType, accept, body }: Arrival): Promise<unknown> {
    const { resource, key, subresource } = placeOf(path);
    const type = TYPES[contentType];
    if (type === undefined) throw new Error(`${contentType} is no type of a patch`);
    const patch = (type === "json" ? { type, operations: body } : { type, body }) as Patch;
    const answer = accept.includes("as=PartialObjectMetadata") ? "metadata" : "object";
    const call = { ...callOf(WRITER, resource, key, subresource), dryRun: query["dryRun"] === "All" };
    return this.#options.server.patch(call, patch, answer);
  }

  async #delete(resource: Resource, key: { readonly name: string }, body: DeletionBody): Promise<unknown> {
    const { preconditions = {}, dryRun } = body;
    await this.#options.server.delete(WRITER, resource, key, { ...preconditions, dryRun: dryRun?.[0] === "All" });
    return { kind: "Status", status: "Success" };
  }
}

interface DeletionBody {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: readonly string[];
}

/** Faults after which the API server has received the call. */
const ASKED: ReadonlySet<Fate> = new Set(["answer lost", "answer cut", "503, carried out"]);

const STATUSES = {
  throttled: { code: 429, reason: "TooManyRequests" },
  "500": { code: 500, reason: "InternalError" },
  "503, carried out": { code: 503, reason: "ServiceUnavailable" },
} as const;

function refuse(
  response: http.ServerResponse,
  status: { readonly code: number; readonly reason: string },
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status.code, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify({ kind: "Status", status: "Failure", message: `so says ${status.reason}`, ...status }));
}

async function arrivalOf(request: http.IncomingMessage): Promise<Arrival> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const { pathname, searchParams } = new URL(request.url ?? "", "http://server");
  const text = Buffer.concat(parts).toString();
  return {
    method: request.method ?? "",
    path: pathname,
    query: Object.fromEntries(searchParams),
    contentType: request.headers["content-type"] ?? "",
    accept: request.headers.accept ?? "",
    body: text === "" ? undefined : JSON.parse(text),
    atMs: performance.now(),
  };
}

export function placeOf(path: string) {
  const parts = path.split("/").map(decodeURIComponent);
  const resource = parts[1] === "api" ? PODS : SIDECARSETS;
  const rest = parts.slice(parts[1] === "api" ? 3 : 4);
  const namespace = rest[0] === "namespaces" ? rest[1] : undefined;
  const [, name = "", subresource = ""] = namespace === undefined ? rest : rest.slice(2);
  return { resource, key: { name, ...(namespace === undefined ? {} : { namespace }) }, subresource };
}
