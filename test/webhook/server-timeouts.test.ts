/** Tests the limits for slow clients that a port sets in Node. */
import { mkdtemp } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { serveHttps } from "../../shared/webhook/server/https-server.ts";
import { writeTlsFiles } from "./cluster.ts";

const TIMES = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 1_000 };
const app = async () => ({ status: 200, headers: {}, body: "" });

beforeEach(() => {
  for (const module of [http, https]) vi.spyOn(module, "createServer");
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

test("a port checks every second for clients that take 10 seconds for headers or handshake, or 30 for a request", async () => {
  const tls = await writeTlsFiles(await mkdtemp(join(tmpdir(), "sidecarset-test-")));
  for (const files of [{}, tls]) await (await serveHttps(app, { ...files, host: "127.0.0.1", port: 0 })).close();
  expect(vi.mocked(http.createServer).mock.calls).toMatchObject([[TIMES, {}]]);
  expect(vi.mocked(https.createServer).mock.calls).toMatchObject([[{ ...TIMES, handshakeTimeout: 10_000 }, {}]]);
});
