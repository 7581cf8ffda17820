/**
 * An API server that creates long lists when they are requested, so that they need no memory. It serves lists, single
 * objects, and watches without events.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createCertificates } from "../../../infra/local/http/https-server.ts";
import { ANNOUNCEMENTS_CONFIG_MAP, KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import { webhookConfigurations } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { NAMESPACE, rolloutPod, sidecarSets } from "../fixture.ts";
import { answerCalls } from "./answer-calls.ts";

/** The number of objects of each kind. */
interface Contents {
  readonly sidecarSets: number;
  readonly pods: number;
}

export interface MadeUpApi {
  readonly server: string;
  /** the authority's certificate as PEM */
  readonly certificateAuthority: string;
}

/** The version of every list. */
const RESOURCE_VERSION = "1000";

type Make = (index: number) => object;

interface Collection {
  readonly kind: string;
  readonly count: number;
  readonly make: Make;
}

function collections({ sidecarSets: sets, pods }: Contents): Readonly<Record<string, Collection>> {
  const all = sidecarSets(sets);
  const [template] = all.slice(-1);
  const pod: Make = (index) => (template ? rolloutPod(index, template) : {});
  return {
    sidecarsets: {
      kind: "SidecarSetList",
      count: sets,
      make: (index) => ({ apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", ...all[index] }),
    },
    pods: { kind: "PodList", count: pods, make: pod },
    controllerrevisions: { kind: "ControllerRevisionList", count: 0, make: () => ({}) },
  };
}

function page({ kind, count, make }: Collection, query: URLSearchParams): object {
  const from = Number(query.get("continue") ?? 0);
  const to = Math.min(count, from + Number(query.get("limit") ?? count));
  const items = Array.from({ length: to - from }, (_, index) => make(from + index));
  const metadata = { resourceVersion: RESOURCE_VERSION, ...(to < count ? { continue: String(to) } : {}) };
  return { apiVersion: "v1", kind, metadata, items };
}

/** Metadata of objects in an old installation. */
const CREATED = { uid: "1", generation: 1, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
const SINGLE: Readonly<Record<string, object>> = {
  [`/api/v1/namespaces/${KRUISE_NAMESPACE}/configmaps/${ANNOUNCEMENTS_CONFIG_MAP}`]: {
    metadata: { ...CREATED, name: ANNOUNCEMENTS_CONFIG_MAP, namespace: KRUISE_NAMESPACE },
  },
  ...Object.fromEntries(
    webhookConfigurations({ url: "https://webhooks.example.com" }).map((configuration) => [
      `/apis/admissionregistration.k8s.io/v1/${configuration.kind?.toLowerCase()}s/${configuration.metadata?.name}`,
      { ...configuration, metadata: { ...CREATED, ...configuration.metadata } },
    ]),
  ),
};

function answerTo(known: Readonly<Record<string, Collection>>, url: URL): object | "watch" | undefined {
  const single = SINGLE[url.pathname];
  if (single !== undefined) return single;
  const [, plural = "", name] =
    /\/(sidecarsets|pods|controllerrevisions|namespaces)(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
  if (url.searchParams.has("watch")) return "watch";
  if (plural === "namespaces") return { ...NAMESPACE, metadata: { ...NAMESPACE.metadata, name } };
  const collection = known[plural];
  if (collection === undefined) return undefined;
  if (name === undefined) return page(collection, url.searchParams);
  const index = Number(name.replace(/^\D*/, ""));
  return index < collection.count ? collection.make(index) : undefined;
}

function send(response: ServerResponse, code: number, value: object): void {
  const body = JSON.stringify(value);
  response.writeHead(code, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body);
}

/** Milliseconds until each answer; null: it does not answer. */
let delayMs: number | null = 0;

async function answer(known: Readonly<Record<string, Collection>>, request: IncomingMessage, response: ServerResponse) {
  if (delayMs === null) return;
  if (delayMs > 0) await sleep(delayMs);
  const value = answerTo(known, new URL(request.url ?? "/", "https://127.0.0.1"));
  if (value === "watch") response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  else if (value === undefined)
    send(response, 404, { kind: "Status", status: "Failure", code: 404, reason: "NotFound", message: "not found" });
  else send(response, 200, value);
}

async function start(contents: Contents): Promise<MadeUpApi> {
  const { authority, certificate, key } = await createCertificates();
  const known = collections(contents);
  const server = createServer({ cert: certificate, key }, (request, response) => answer(known, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server: `https://127.0.0.1:${port}`, certificateAuthority: authority };
}

answerCalls({
  start,
  delay: (milliseconds: number | null) => {
    delayMs = milliseconds;
  },
});
