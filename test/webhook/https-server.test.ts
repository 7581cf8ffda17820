import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { tickUntilAborted } from "../../functions/server/ticks.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { createLog } from "../../shared/log.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { serveHttps } from "../../shared/webhook/server/https-server.ts";
import { PATIENT } from "../support/patient.ts";
import { writeTlsFiles } from "./cluster.ts";

const silent = createLog("error", () => undefined);
const review = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: { uid: "u", operation: "CREATE", resource: { group: "", version: "v1", resource: "pods" } },
});

test("a closing server answers the request in flight and accepts no new one", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-test-"));
  const tls = await writeTlsFiles(folder);
  let begun: () => void = () => undefined;
  const isClosing = Promise.withResolvers<void>();
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const app = webhookApp({
    log: silent,
    isKnown: async () => true,
    admissions: {
      "/slow": async () => {
        begun();
        await isClosing.promise;
        return { kind: "allowed" };
      },
    },
  });
  const server = await serveHttps(app, { ...tls, host: "127.0.0.1", port: 0 });
  const agent = new Agent({ keepAlive: true, ca: tls.certificate });
  const call = () =>
    new Promise<number>((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const options = { method: "POST", agent, headers };
      const outgoing = request(`https://127.0.0.1:${server.port}/slow`, options, (incoming) => {
        incoming.resume().on("end", () => resolve(incoming.statusCode ?? 0));
      });
      outgoing.on("error", reject);
      outgoing.end(review);
    });
  const inFlight = call();
  await isBegun;
  // On this clock no limit applies: only the answer ends the connection.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const closed = server.close();
  isClosing.resolve();
  expect(await inFlight).toBe(200);
  await closed;
  await expect(call()).rejects.toThrow();
  agent.destroy();
  await rm(folder, { recursive: true, force: true });
});

test("without a certificate serveHttps speaks plain HTTP and reads no client certificate", async () => {
  let isShown: boolean | undefined;
  const isKnown = async ({ clientCertificate }: { clientCertificate?: () => unknown }) => {
    isShown = clientCertificate?.() !== undefined;
    return true;
  };
  const app = webhookApp({ log: silent, isKnown, admissions: { "/allow": () => ({ kind: "allowed" }) } });
  const server = await serveHttps(app, { host: "127.0.0.1", port: 0 });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`http://127.0.0.1:${server.port}/allow`, { method: "POST", headers, body: review });
  expect([response.status, isShown]).toEqual([200, false]);
  await server.close();
});

test("requests that break off free their memory for other requests", async () => {
  const app = webhookApp({
    log: silent,
    isKnown: async () => true,
    admissions: { "/allow": () => ({ kind: "allowed" }) },
  });
  const server = await serveHttps(app, { host: "127.0.0.1", port: 0 });
  const [promised, sent] = [7 * 1024 * 1024, "x".repeat(6 * 1024 * 1024)];
  const head = `POST /allow HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${promised}\r\n\r\n`;
  // The number of bodies that 64 MiB can hold.
  for (let broken = 0; broken < 10; broken++) {
    const socket = connect(server.port, "127.0.0.1").on("error", () => undefined);
    await new Promise((resolve) => socket.write(head + sent, resolve));
    socket.destroy();
  }
  const headers = { "content-type": "application/json" };
  const init = { method: "POST", headers, body: review.padEnd(promised) };
  const status = async () => (await fetch(`http://127.0.0.1:${server.port}/allow`, init)).status;
  await expect.poll(status, PATIENT).toBe(200);
  await server.close();
});

test("an idle connection is kept for more than 90 seconds, which is longer than an API server keeps it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-test-"));
  const tls = await writeTlsFiles(folder);
  const app = webhookApp({
    log: silent,
    isKnown: async () => true,
    admissions: { "/allow": () => ({ kind: "allowed" }) },
  });
  const server = await serveHttps(app, { ...tls, host: "127.0.0.1", port: 0 });
  const agent = new Agent({ keepAlive: true, ca: tls.certificate });
  const options = { method: "POST", agent, headers: { "content-type": "application/json" } };
  const keepAlive = await new Promise<string>((resolve, reject) => {
    const outgoing = request(`https://127.0.0.1:${server.port}/allow`, options, (incoming) => {
      incoming.resume().on("end", () => resolve(String(incoming.headers["keep-alive"])));
    });
    outgoing.on("error", reject).end(review);
  });
  expect(Number(/^timeout=(\d+)$/.exec(keepAlive)?.[1])).toBeGreaterThan(90);
  agent.destroy();
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

test("ticks run one after the other, continue after a failure and end on abort", async () => {
  const end = new AbortController();
  let [underWay, most, ticks] = [0, 0, 0];
  const connect = async () => {
    most = Math.max(most, ++underWay);
    await sleep(20);
    underWay--;
    if (++ticks === 3) end.abort();
    throw new Error("no way to the cluster");
  };
  const lines: string[] = [];
  await tickUntilAborted({
    connect,
    kruiseNamespace: "kruise-system",
    settings: DEFAULT_ROLLOUT_SETTINGS,
    tickMs: 1,
    log: createLog("info", (line) => lines.push(line)),
    onReport: undefined,
    signal: end.signal,
  });
  expect([most, ticks]).toEqual([1, 3]);
  expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(Array(3).fill("pass failed"));
});
