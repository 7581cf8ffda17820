import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type RequestOptions, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLog } from "../../shared/log.ts";
import { type AuthenticationMode, parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { type ClientCertificate, commonName, createAuthority } from "./certificates.ts";
import { writePathSecret, writeTlsFiles } from "./cluster.ts";

const DAY_MS = 24 * 60 * 60_000;
const token = randomBytes(32).toString("base64url");
const names = "kube-apiserver,webhook-client.example.com";
const review = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: { uid: "u", operation: "CREATE", resource: { group: "", version: "v1", resource: "pods" } },
});

let folder: string;
let ca: string;
let pathSecret: string;
const servers = new Map<AuthenticationMode, WebhookServer>();
const certificates: Record<string, ClientCertificate> = {};
let bytesRead = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "https-authentication-"));
  const { certificate, ...tls } = await writeTlsFiles(folder);
  ca = certificate;
  const secret = await writePathSecret(folder);
  pathSecret = secret.pathSecret;
  await writeFile(join(folder, "tokens"), token);
  const { authority, sign } = await createAuthority();
  await writeFile(join(folder, "client-ca.crt"), authority);
  const yesterday = { from: new Date(Date.now() - 2 * DAY_MS), to: new Date(Date.now() - DAY_MS) };
  certificates["right"] = await sign({ subject: commonName("kube-apiserver") });
  certificates["alternative"] = await sign({ subject: commonName("x"), names: ["webhook-client.example.com"] });
  certificates["other name"] = await sign({ subject: commonName("somebody") });
  certificates["expired"] = await sign({ subject: commonName("kube-apiserver"), ...yesterday });
  certificates["other authority"] = await (await createAuthority()).sign({ subject: commonName("kube-apiserver") });
  const log = createLog("error", () => undefined);
  for (const mode of ["client-certificate", "bearer-token", "secret-path"] as const) {
    const settings = parseAuthentication({
      AUTHENTICATION: mode,
      CLIENT_NAMES: names,
      BEARER_TOKENS: join(folder, "tokens"),
      PATH_SECRETS: secret.pathSecrets,
    });
    const options = { aws: () => Promise.reject() as never, log, now: Date.now };
    const { isKnown } = authenticator(settings, options, { hasConversions: true });
    const app = webhookApp({ log, isKnown, admissions: { "/mutate-pod": () => ({ kind: "allowed" }) } });
    const counted: typeof app = (asked) =>
      app({
        ...asked,
        readBody: async (max) => {
          const body = await asked.readBody(max);
          bytesRead += body?.length ?? 0;
          return body;
        },
      });
    const clientCa = mode === "client-certificate" ? { clientCa: join(folder, "client-ca.crt") } : {};
    servers.set(mode, await serveHttps(counted, { ...tls, ...clientCa, host: "127.0.0.1", port: 0 }));
  }
});
afterAll(async () => {
  for (const server of servers.values()) await server.close();
  await rm(folder, { recursive: true });
});

function post(mode: AuthenticationMode, path: string, options: RequestOptions = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", ...options.headers };
    const url = `https://127.0.0.1:${servers.get(mode)?.port}${path}`;
    const outgoing = request(url, { method: "POST", ca, agent: false, ...options, headers }, (incoming) => {
      incoming.resume().on("end", () => resolve(incoming.statusCode ?? 0));
    });
    outgoing.on("error", reject);
    outgoing.end(review);
  });
}

describe("TLS:", () => {
  test.each([
    ["right", 200],
    ["alternative", 200],
    ["other name", 401],
    ["expired", 401],
    ["other authority", 401],
    ["none", 401],
  ])("a client certificate of kind %s is answered with %i", async (which, status) => {
    expect(await post("client-certificate", "/mutate-pod", certificates[which] ?? {})).toBe(status);
  });

  test("the right client certificate has no effect in the other modes", async () => {
    expect(await post("bearer-token", "/mutate-pod", certificates["right"])).toBe(401);
    expect(await post("secret-path", "/mutate-pod", certificates["right"])).toBe(401);
  });

  test.each([
    ["client-certificate", true],
    ["bearer-token", false],
    ["secret-path", false],
  ] as const)("the mode %s asks for a client certificate: %s", async (mode, expected) => {
    const socket = connect({ host: "127.0.0.1", port: servers.get(mode)?.port ?? 0, ca });
    await once(socket, "secureConnect");
    // Servers list their signature algorithms when they ask for a certificate.
    expect(socket.getSharedSigalgs().length > 0).toBe(expected);
    socket.destroy();
  });

  test.each([
    ["the right bearer token gets status 200", () => token, 200],
    ["a wrong bearer token gets status 401", () => randomBytes(32).toString("base64url"), 401],
  ])("over TLS %s", async (_, given, status) => {
    expect(await post("bearer-token", "/mutate-pod", { headers: { authorization: `Bearer ${given()}` } })).toBe(status);
  });

  test.each([
    ["the right secret path gets status 200", () => `${registeredPath(pathSecret, "/mutate-pod")}?timeout=10s`, 200],
    [
      "a wrong secret path gets status 401",
      () => `/s/${randomBytes(32).toString("base64url")}/mutate-pod?timeout=10s`,
      401,
    ],
    ["a path without a secret gets status 401", () => "/mutate-pod", 401],
  ])("over TLS %s", async (_, path, status) => {
    expect(await post("secret-path", path())).toBe(status);
  });
});

test("a stranger who announces gigabytes is answered before sending them and is cut off", async () => {
  bytesRead = 0;
  const socket: TLSSocket = connect({ host: "127.0.0.1", port: servers.get("bearer-token")?.port ?? 0, ca });
  const head =
    "POST /mutate-pod HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5000000000\r\n\r\n{";
  socket.write(head);
  let answer = "";
  const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()).on("error", () => resolve()));
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  await ended;
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(answer).toMatch(/^connection: close\r$/im);
  expect(bytesRead).toBe(0);
});
