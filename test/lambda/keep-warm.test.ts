/** Tests the ping that keeps an environment of mutate-pod warm when the API server does not answer. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { HttpEvent } from "../../functions/lambda/body.ts";
import { createCertificates } from "../../infra/local/http/https-server.ts";

let folder: string;
let server: Server;
const sockets: Socket[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keep-warm-"));
  await writeFile(join(folder, "token"), "made-up");
  server = createServer((socket) => void sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  for (const socket of sockets) socket.destroy();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

test("a ping ends within the function's timeout though the API server hangs, so that Lambda keeps the environment", async () => {
  const { authority } = await createCertificates();
  const env = {
    AUTHENTICATION: "insecure",
    LOG_LEVEL: "error",
    CLUSTER_SERVER: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    CLUSTER_TOKEN: join(folder, "token"),
    CLUSTER_CA: Buffer.from(authority).toString("base64"),
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  // Another file of this thread may have loaded the function for another cluster.
  vi.resetModules();
  const { handler } = await import("../../functions/lambda/mutate-pod.ts");
  const connected = once(server, "connection");
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const ping = handler({ keepWarm: true } as unknown as HttpEvent);
  // A ping that ends before it connects fails at once; otherwise the wait would never end.
  await Promise.race([connected, ping.then(() => Promise.reject(new Error("it asked nobody")))]);
  // Lambda ends the function after ten seconds.
  await vi.advanceTimersByTimeAsync(9_000);
  vi.useRealTimers();
  expect(await ping).toEqual({ statusCode: 204 });
});
