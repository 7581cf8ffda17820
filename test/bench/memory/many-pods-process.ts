/** An API server of one SidecarSet and as many pods as are asked for: lists, watches and patches them, and keeps little. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { createCertificates } from "../../../infra/local/certificates.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { sidecarSets } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { type MadeUpPods, madeUpPods } from "./made-up-pods.ts";
import { type SmallObjects, smallObjects } from "./small-objects.ts";

export interface ManyPods {
  readonly pods: number;
  readonly maxUnavailable: string;
}

const SIDECARSETS = "/apis/apps.kruise.io/v1beta1/sidecarsets";
const ALL_PODS = "/api/v1/pods";
const POD = /^\/api\/v1\/namespaces\/[^/]+\/pods\/([^/]+)(?:\/status)?$/;
/** As an API server compresses: what is longer than this, at the lowest level. */
const COMPRESSED_FROM = 128 * 1024;

let version = 1_000_000;
const nextVersion = () => String(++version);
const watchers = new Set<ServerResponse>();
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

function refuse(response: ServerResponse, code: number, reason: string): void {
  send(response, code, { kind: "Status", status: "Failure", code, reason, message: reason });
}

function tell(pod: Pod): void {
  const line = `${JSON.stringify({ type: "MODIFIED", object: pod })}\n`;
  for (const watcher of watchers) watcher.write(line);
}

function watch(response: ServerResponse, path: string): void {
  response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  if (path !== ALL_PODS) return;
  watchers.add(response);
  response.on("close", () => watchers.delete(response));
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "", url = "/" } = request;
  const { pathname: path, searchParams: query } = new URL(url, "https://127.0.0.1");
  if (query.has("watch")) return watch(response, path);
  const body: unknown = JSON.parse((await text(request)) || "null");
  try {
    const value = answerTo({ method, path, query, body });
    if (value === undefined) refuse(response, 404, "NotFound");
    else send(response, method === "POST" ? 201 : 200, value);
  } catch {
    refuse(response, 422, "Invalid");
  }
}

async function start({ pods: count, maxUnavailable }: ManyPods): Promise<MadeUpApi> {
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
