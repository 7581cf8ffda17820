/** An API server of one SidecarSet and as many pods as are asked for: lists, watches and patches them, and keeps little. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { createCertificates } from "../../../infra/local/http/certificates.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { sidecarSets } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { type MadeUpPods, madeUpPods } from "./made-up-pods.ts";
import { type SmallObjects, smallObjects } from "./small-objects.ts";

export interface ManyPods {
  readonly pods: number;
  readonly maxUnavailable: number;
  /** as a Priority level that rejects: so many calls at once, each of which takes its time; absent: as many as come */
  readonly level?: { readonly seats: number; readonly callMs: number };
}

const SIDECARSETS = "/apis/apps.kruise.io/v1beta1/sidecarsets";
const ALL_PODS = "/api/v1/pods";
const POD = /^\/api\/v1\/namespaces\/[^/]+\/pods\/([^/]+)(?:\/status)?$/;
/** As an API server compresses: what is longer than this, at the lowest level. */
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

function listPods(query: URLSearchParams): object {
  // Nobody waits for a container: every pod runs.
  if (query.has("fieldSelector")) return list([]);
  const from = Number(query.get("continue") ?? 0);
  const to = Math.min(pods.count, from + Number(query.get("limit") ?? pods.count));
  const items = Array.from({ length: to - from }, (_, index) => pods.at(from + index));
  return list(items, to < pods.count ? { continue: String(to) } : {});
}

function ofPod(name: string, { method, body }: Call): object | undefined {
  if (method === "GET") return pods.get(name);
  const { metadata } = pods.patch(name, body) ?? {};
  return metadata && { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata };
}

function answerTo(call: Call): object | undefined {
  const { method, path, query, body } = call;
  if (path === ALL_PODS) return listPods(query);
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

/** Whoever finds no seat is to come again in a second. */
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

function tell(pod: Pod): void {
  told.push(pod);
  for (const watcher of watchers) watcher.write(eventOf(pod));
}

/** From where the list stood. */
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
    const value = answerTo(call);
    if (value === undefined) refuse(response, 404, "NotFound");
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
  const { authority, certificate, key } = await createCertificates();
  const server = createServer({ cert: certificate, key }, handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server: `https://127.0.0.1:${port}`, certificateAuthority: authority };
}

answerCalls({ start });
