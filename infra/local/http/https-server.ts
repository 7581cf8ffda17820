/** The HTTPS listener: authentication, bodies in and out, watches as lines. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, isIP } from "node:net";
import { gzipSync } from "node:zlib";
import { generate } from "selfsigned";
import { stringify } from "yaml";
import type { Api, Caller, User } from "../storage/api.ts";
import { at } from "../storage/json.ts";
import type { WatchSession } from "../storage/read.ts";
import {
  type ApiRequest,
  errorAnswer,
  type Front,
  type ObjectAnswer,
  readBody,
  type WatchAnswer,
} from "./http-message.ts";
import { handle } from "./request-handler.ts";
import type { HandlerSettings } from "./resource-handler.ts";

const GZIP_FROM_BYTES = 128 * 1024;

export interface ServerSettings extends HandlerSettings {
  readonly port: number;
  readonly front: Front;
  readonly certificates: Certificates;
  /** bearer token → user */
  readonly users: ReadonlyMap<string, User>;
}

export interface ApiServer {
  readonly port: number;
  close(): Promise<void>;
}

function callerOf(incoming: IncomingMessage, users: ReadonlyMap<string, User>): Caller | undefined {
  const token = /^Bearer (.+)$/i.exec(incoming.headers.authorization ?? "")?.[1];
  const user = users.get(token ?? "");
  const { "impersonate-user": [as] = [], "impersonate-group": groups = [] } = incoming.headersDistinct;
  const impersonated = as === undefined ? user : { username: as, groups: [...groups, "system:authenticated"] };
  return user && impersonated && { user: impersonated, userAgent: incoming.headers["user-agent"] ?? "" };
}

async function requestOf(incoming: IncomingMessage, user: User | undefined): Promise<ApiRequest> {
  const url = new URL(incoming.url ?? "/", "https://localhost");
  return {
    method: incoming.method ?? "GET",
    path: url.pathname.length > 1 ? url.pathname.replace(/\/$/, "") : url.pathname,
    parameters: url.searchParams,
    accept: incoming.headers.accept ?? "",
    mediaType: (incoming.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "",
    userAgent: incoming.headers["user-agent"] ?? "",
    body: await readBody(incoming),
    user,
  };
}

function setHeaders(outgoing: ServerResponse, answer: ObjectAnswer): void {
  for (const warning of answer.warnings ?? []) {
    outgoing.appendHeader("Warning", `299 - ${JSON.stringify(warning)}`);
  }
  outgoing.setHeader("Content-Type", answer.contentType ?? "application/json");
  outgoing.setHeader("Cache-Control", "no-cache, private");
  const retryAfter = at(answer.body, "details", "retryAfterSeconds");
  if (typeof retryAfter === "number") outgoing.setHeader("Retry-After", String(retryAfter));
}

function send(incoming: IncomingMessage, outgoing: ServerResponse, answer: ObjectAnswer): void {
  const text = typeof answer.body === "string" ? answer.body : `${JSON.stringify(answer.body)}\n`;
  const isZipped = text.length > GZIP_FROM_BYTES && /\bgzip\b/.test(String(incoming.headers["accept-encoding"]));
  setHeaders(outgoing, answer);
  if (isZipped) outgoing.setHeader("Content-Encoding", "gzip");
  outgoing.writeHead(answer.code);
  outgoing.end(isZipped ? gzipSync(text, { level: 1 }) : text);
}

function stream(outgoing: ServerResponse, answer: WatchAnswer, sessions: Set<WatchSession>): void {
  outgoing.writeHead(200, { "Content-Type": "application/json", "Cache-Control": "no-cache, private" });
  outgoing.flushHeaders();
  const session = answer.begin({
    event: (event) => outgoing.write(`${JSON.stringify(answer.encode(event))}\n`),
    end: () => outgoing.end(),
  });
  sessions.add(session);
  outgoing.on("close", () => {
    session.close();
    sessions.delete(session);
  });
}

/** Listens on 127.0.0.1; port 0 picks a free one. */
export function serveHttps(api: Api, settings: ServerSettings): Promise<ApiServer> {
  const sessions = new Set<WatchSession>();
  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    try {
      const caller = callerOf(incoming, settings.users);
      const ask = (request: ApiRequest) => handle(api, request, caller, settings);
      const request = await requestOf(incoming, caller?.user);
      const answer = await (caller ? settings.front(request, ask) : ask(request));
      if ("begin" in answer) stream(outgoing, answer, sessions);
      else send(incoming, outgoing, answer);
    } catch (error) {
      if (outgoing.headersSent) outgoing.destroy();
      else send(incoming, outgoing, errorAnswer(error));
    }
  };
  const { key, certificate } = settings.certificates;
  const server = createServer({ key, cert: certificate }, (incoming, outgoing) => void respond(incoming, outgoing));
  // Watches live for as long as they are asked to.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 90_000;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(settings.port, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      const close = (): Promise<void> => {
        for (const session of sessions) session.close();
        const closed = new Promise<void>((done) => server.close(() => done()));
        server.closeAllConnections();
        return closed;
      };
      resolve({ port, close });
    });
  });
}

/** A kubeconfig for one cluster and one token. */
export interface Access {
  readonly url: string;
  /** PEM */
  readonly caCertificate: string;
  readonly token: string;
}

/** YAML text. */
export function kubeconfigText(access: Access): string {
  const name = "local";
  const authority = Buffer.from(access.caCertificate).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: access.url, "certificate-authority-data": authority } }],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}

// Every cluster has its own certificate authority, and a server certificate for 127.0.0.1.

interface Certificates {
  /** PEM */
  readonly authority: string;
  /** PEM */
  readonly certificate: string;
  /** PEM */
  readonly key: string;
}

/**
 * Certificates, also for webhooks of tests: one authority, certificates for localhost and one other address or name.
 */
export async function createCertificates(host = "127.0.0.1"): Promise<Certificates> {
  const common = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;
  const authority = await generate([{ name: "commonName", value: "kubernetes" }], {
    ...common,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const server = await generate([{ name: "commonName", value: "kube-apiserver" }], {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 2, value: "kubernetes" },
          { type: 7, ip: "127.0.0.1" },
          isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host },
        ],
      },
    ],
  });
  return { authority: authority.cert, certificate: server.cert, key: server.private };
}
