/** An API server with one SidecarSet and any number of pods. It lists, watches and patches them, and stores little. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { createCertificates } from "../../../infra/local/http/https-server.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { sidecarSets } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { type MadeUpPods, madeUpPods } from "./made-up-pods.ts";
import { type SmallObjects, smallObjects } from "./small-objects.ts";

export interface ManyPods {
  readonly pods: number;
  readonly maxUnavailable: number;
  /** a priority level that rejects: the number of calls at once, and the time of each; absent: no limit */
  readonly level?: { readonly seats: number; readonly callMs: number };
}

const SIDECARSETS = "/apis/apps.kruise.io/v1beta1/sidecarsets";
const ALL_PODS = "/api/v1/pods";
const POD = /^\/api\/v1\/namespaces\/[^/]+\/pods\/([^/]+)(?:\/status)?$/;
/** Number of bytes from which answers are compressed at the lowest level, as by an API server. */
const COMPRESSED_FROM = 128 * 1024;

let version = 1_000_000;
const nextVersion = () => String(++version);
const watchers = new Set<ServerResponse>();
const told: Pod[] = [];
let level: ManyPods["level"];
let underWay = 0;
let objects: SmallObjects;
let pods: MadeUpPods;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
}

function list(items: readonly object[], more: object = {}): object {
  return { apiVersion: "v1", kind: "List", metadata: { resourceVersion: String(version), ...more }, items };
}

/**
 * Pages of pods are compressed before they are requested. An API server has several processors, and creates nothing at
 * this moment.
 */
const PAGE_SIZE = 500;
const pages = new Map<number, Buffer>();

function pageFrom(from: number): Buffer {
  const length = Math.min(pods.count - from, PAGE_SIZE);
  const items = Array.from({ length }, (_, index) => JSON.stringify(pods.at(from + index)));
  return gzipSync(items.join(","), { level: 1 });
}

/** A reader of gzip continues where the next compressed part begins. */
function sendPods(response: ServerResponse, query: URLSearchParams): void {
  const from = Number(query.get("continue") ?? 0);
  const to = Math.min(pods.count, from + PAGE_SIZE);
  const [head = "", tail = ""] = JSON.stringify(list([], to < pods.count ? { continue: String(to) } : {})).split("[]");
  const page = pages.get(from) ?? pageFrom(from);
  pages.set(from, page);
  const sent = Buffer.concat([gzipSync(`${head}[`), page, gzipSync(`]${tail}`)]);
  const headers = { "content-type": "application/json", "content-encoding": "gzip", "content-length": sent.length };
  response.writeHead(200, headers).end(sent);
}

function ofPod(name: string, { method, body }: Call): object | undefined {
  if (method === "GET") return pods.get(name);
  const { metadata } = pods.patch(name, body) ?? {};
  return metadata && { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata };
}

function answerTo(call: Call): object | undefined {
  const { method, path, query, body } = call;
  // No pod waits for its containers: all of them run.
  if (path === ALL_PODS) return list([]);
  const [, pod] = POD.exec(path) ?? [];
  if (pod !== undefined) return ofPod(pod, call);
  if (method === "POST") return objects.create(path, body as KubernetesObject);
  if (method === "PATCH") return objects.patch(path.replace(/\/status$/, ""), body);
  return query.has("limit") ? list(objects.list(path)) : objects.get(path);
}

function send(response: ServerResponse, code: number, value: object): void {
  const body = Buffer.from(JSON.stringify(value));
  const isLong = body.length > COMPRESSED_FROM;
  const sent = isLong ? gzipSync(body, { level: 1 }) : body;
  const headers = { "content-type": "application/json", "content-length": sent.length };
  response.writeHead(code, isLong ? { ...headers, "content-encoding": "gzip" } : headers).end(sent);
}

/** Answers 429 to a caller without a free seat, which comes again after a second. */
async function withSeat(response: ServerResponse, work: () => Promise<void>): Promise<void> {
  if (level === undefined) return await work();
  if (underWay >= level.seats) {
    response.setHeader("retry-after", "1");
    return refuse(response, 429, "TooManyRequests");
  }
  underWay++;
  await sleep(level.callMs);
  await work();
  underWay--;
}

function refuse(response: ServerResponse, code: number, reason: string): void {
  send(response, code, { kind: "Status", status: "Failure", code, reason, message: reason });
}

const eventOf = (pod: Pod) => `${JSON.stringify({ type: "MODIFIED", object: pod })}\n`;

function tell(pod: Pod, index: number): void {
  pages.delete(index - (index % PAGE_SIZE));
  told.push(pod);
  for (const watcher of watchers) watcher.write(eventOf(pod));
}

/** Opens a watch from the list's version on. */
function watch(response: ServerResponse, path: string, since: number): void {
  response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  if (path !== ALL_PODS) return;
  const missed = told.filter(({ metadata }) => Number(metadata?.resourceVersion) > since);
  for (const pod of missed) response.write(eventOf(pod));
  watchers.add(response);
  response.on("close", () => watchers.delete(response));
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "", url = "/" } = request;
  const { pathname: path, searchParams: query } = new URL(url, "https://127.0.0.1");
  if (query.has("watch")) return watch(response, path, Number(query.get("resourceVersion")));
  const body: unknown = JSON.parse((await text(request)) || "null");
  await withSeat(response, async () => answer({ method, path, query, body }, response));
}

function answer(call: Call, response: ServerResponse): void {
  try {
    const isAll = call.path === ALL_PODS && !call.query.has("fieldSelector");
    const value = isAll ? undefined : answerTo(call);
    if (isAll) sendPods(response, call.query);
    else if (value === undefined) refuse(response, 404, "NotFound");
    else send(response, call.method === "POST" ? 201 : 200, value);
  } catch {
    refuse(response, 422, "Invalid");
  }
}

async function start({ pods: count, maxUnavailable, level: given }: ManyPods): Promise<MadeUpApi> {
  level = given;
  const [{ metadata, spec } = { metadata: {}, spec: {} }] = sidecarSets(1);
  const sidecarSet = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { ...metadata, generation: 1 },
    spec: { ...spec, updateStrategy: { type: "RollingUpdate", maxUnavailable } },
  };
  objects = smallObjects(nextVersion);
  objects.create(SIDECARSETS, sidecarSet);
  pods = madeUpPods({ count, sidecarSet, nextVersion, onChange: tell });
  for (let from = 0; from < count; from += PAGE_SIZE) pages.set(from, pageFrom(from));
  const { authority, certificate, key } = await createCertificates();
  const server = createServer({ cert: certificate, key }, handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server: `https://127.0.0.1:${port}`, certificateAuthority: authority };
}

answerCalls({ start });
