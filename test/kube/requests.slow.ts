/** Tests the request of a call, the returned part of the answer, and the events of onRequest. */
import type http from "node:http";
import https from "node:https";
import net from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createCertificates } from "../../infra/local/http/https-server.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { type Cluster, EVENTS, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ClusterAccess, RequestRecord } from "../../shared/kube/transport.ts";
import { PATIENT } from "../support/patient.ts";
import { answer, closeServers, failureOf, listen, serve, stopTimeLimits } from "./servers.ts";

afterEach(closeServers);

const POD = { namespace: "shop", name: "a" };
const OBJECT = { metadata: { ...POD, resourceVersion: "1" } };

interface Seen {
  readonly line: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Returns the single request that a call sends. The server answers it with an object. */
async function requestOf(call: (cluster: Cluster) => Promise<unknown>, more: Partial<ClusterAccess> = {}) {
  const seen: Seen[] = [];
  const server = await serve(({ method, url, headers }, response, body) => {
    seen.push({ line: `${method} ${url}`, headers, body });
    answer(response, 200, { ...OBJECT, items: [] });
  });
  await call(connectCluster({ server, ...more }));
  const [one] = seen;
  if (!one || seen.length !== 1) throw new Error(`${seen.length} requests`);
  return one;
}

describe("paths of calls:", () => {
  const json = { type: "json", operations: [] } as const;
  const lastOf = { limit: 5, continue: "c", resourceVersion: "7", resourceVersionMatch: "Exact" } as const;
  it.each<readonly [string, (cluster: Cluster) => Promise<unknown>]>([
    ["GET /api/v1/namespaces/shop", (cluster) => cluster.get(NAMESPACES, { name: "shop" })],
    ["GET /apis/apps.kruise.io/v1beta1/sidecarsets/a%3Fb", (cluster) => cluster.get(SIDECARSETS, { name: "a?b" })],
    ["GET /api/v1/namespaces/a%3Fb/pods", (cluster) => cluster.list(PODS, { namespace: "a?b" })],
    ["GET /api/v1/namespaces", (cluster) => cluster.list(NAMESPACES, { namespace: "shop" })],
    ["GET /api/v1/pods?fieldSelector=a%3Db", (cluster) => cluster.list(PODS, { fieldSelector: "a=b" })],
    [
      "GET /api/v1/pods?limit=5&continue=c&resourceVersion=7&resourceVersionMatch=Exact",
      (cluster) => cluster.list(PODS, lastOf),
    ],
    ["POST /api/v1/namespaces", (cluster) => cluster.create(NAMESPACES, { metadata: { name: "a" } })],
    ["POST /api/v1/pods", (cluster) => cluster.create(PODS, {})],
    [
      "POST /api/v1/namespaces/shop/pods/a/eviction",
      (cluster) => cluster.create(PODS, OBJECT, { subresource: "eviction" }),
    ],
    [
      "PATCH /api/v1/namespaces/shop/pods/a/resize?dryRun=All",
      (cluster) => cluster.patch(PODS, POD, json, { subresource: "resize", dryRun: true }),
    ],
    [
      "PATCH /api/v1/namespaces/shop/pods/a",
      (cluster) => cluster.patch(PODS, POD, json, { dryRun: false, answer: "object" }),
    ],
  ])("the call sends %s", async (line, call) => {
    expect((await requestOf(call)).line).toBe(line);
  });

  it("a call keeps the server's own path, with or without a slash at its end", async () => {
    for (const prefix of ["/clusters/a", "/clusters/a/"]) {
      const asked: (string | undefined)[] = [];
      const server = await serve(({ url }, response) => {
        asked.push(url);
        answer(response, 200, OBJECT);
      });
      await connectCluster({ server: server + prefix }).get(PODS, POD);
      expect(asked).toEqual(["/clusters/a/api/v1/namespaces/shop/pods/a"]);
    }
  });

  it("an eviction without a pod name fails with 404", async () => {
    const cluster = connectCluster({ server: "http://127.0.0.1:1" });
    const evict = async () => cluster.create(PODS, { metadata: { namespace: "shop" } }, { subresource: "eviction" });
    expect(await failureOf(evict())).toMatchObject({ code: 404, reason: "NotFound", isOutcomeKnown: true });
  });
});

describe("headers and bodies of calls:", () => {
  const merge = { type: "merge", body: { a: "ü" } } as const;

  it("a read sends its user agent and accepts JSON and gzip", async () => {
    const { headers } = await requestOf((cluster) => cluster.get(PODS, POD));
    expect(headers).toMatchObject({
      "user-agent": "sidecarset-serverless",
      accept: "application/json",
      "accept-encoding": "gzip",
    });
    for (const name of ["authorization", "content-type", "content-length"]) expect(headers).not.toHaveProperty(name);
    const other = await requestOf((cluster) => cluster.get(PODS, POD), { userAgent: "test/1" });
    expect(other.headers["user-agent"]).toBe("test/1");
  });

  it("a patch sends its content type and its length in bytes", async () => {
    const { headers, body } = await requestOf((cluster) => cluster.patch(PODS, POD, merge));
    expect(headers).toMatchObject({ "content-type": "application/merge-patch+json", "content-length": "10" });
    expect(headers).not.toHaveProperty("accept-encoding");
    expect(headers.accept).toBe("application/json");
    expect(body).toBe('{"a":"ü"}');
  });

  it("a write that needs metadata only accepts PartialObjectMetadata without managedFields, or else the whole object", async () => {
    const options = { answer: "metadata" } as const;
    const patched = await requestOf((cluster) => cluster.patch(PODS, POD, merge, options));
    const created = await requestOf((cluster) => cluster.create(EVENTS, OBJECT, options));
    const metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields";
    for (const { headers } of [patched, created]) expect(headers.accept).toBe(`${metadata},application/json`);
  });

  it("a deletion sends its preconditions and its dry run in DeleteOptions", async () => {
    const bodyOf = async (options?: object) =>
      JSON.parse((await requestOf((cluster) => cluster.delete(PODS, POD, options))).body);
    const none = { apiVersion: "v1", kind: "DeleteOptions" };
    expect(await bodyOf()).toEqual(none);
    expect(await bodyOf({ dryRun: true })).toEqual({ ...none, dryRun: ["All"] });
    const preconditions = { uid: "u", resourceVersion: "7" };
    expect(await bodyOf(preconditions)).toEqual({ ...none, preconditions });
    expect(await bodyOf({ resourceVersion: "7" })).toEqual({ ...none, preconditions: { resourceVersion: "7" } });
  });

  it("a call with an empty or missing token sends no Authorization header", async () => {
    for (const token of [async () => "", async () => undefined]) {
      const { headers } = await requestOf((cluster) => cluster.get(PODS, POD), { token });
      expect(headers).not.toHaveProperty("authorization");
    }
  });
});

describe("TLS:", () => {
  it("a TLS call sends the given server name and the client's certificate", async () => {
    const { certificate: cert, key } = await createCertificates();
    const seen: unknown[] = [];
    const server = https.createServer(
      { cert, key, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const socket = request.socket as TLSSocket & { readonly servername: string };
        seen.push([socket.servername, socket.getPeerCertificate().raw !== undefined]);
        answer(response, 200, OBJECT);
      },
    );
    const address = { server: `https://127.0.0.1:${await listen(server)}`, isInsecure: true };
    await connectCluster({ ...address, tlsServerName: "kubernetes" }).get(PODS, POD);
    await connectCluster({ ...address, clientCertificate: cert, clientKey: key }).get(PODS, POD);
    expect(seen).toEqual([
      ["kubernetes", false],
      [false, true],
    ]);
  });

  it("the outcome of a write is unknown when the server completes the TLS handshake and does not answer", async () => {
    const { certificate: cert, key } = await createCertificates();
    stopTimeLimits();
    const tooLate = () => void vi.advanceTimersByTime(1_000);
    const server = `https://127.0.0.1:${await listen(https.createServer({ cert, key }, tooLate))}`;
    const error = await failureOf(
      connectCluster({ server, isInsecure: true, requestTimeoutMs: 1_000 }).create(PODS, OBJECT),
    );
    expect(error).toMatchObject({ reason: "Timeout", isOutcomeKnown: false });
    expect(error.message).toContain("did not answer within 1000 ms");
  });

  it("the outcome of a write is known when the server never completes the TLS handshake", async () => {
    const server = `https://127.0.0.1:${await listen(net.createServer())}`;
    const write = connectCluster({ server, requestTimeoutMs: 100 }).create(PODS, OBJECT);
    const error = await failureOf(write);
    expect(error).toMatchObject({ reason: "Timeout", isOutcomeKnown: true });
    expect(error.message).toContain("did not accept a connection within 100 ms");
  });
});

it("a call still fails with 401 when its time limit ends while the token is renewed", async () => {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const server = await serve(({ socket }, response) => {
    socket.on("close", () => resolve());
    answer(response, 401, { kind: "Status", code: 401, message: "Unauthorized" });
  });
  stopTimeLimits();
  const renewToken = async () => {
    vi.advanceTimersByTime(1_000);
    await over;
    return false;
  };
  const cluster = connectCluster({ server, requestTimeoutMs: 1_000, token: async () => "old", renewToken });
  expect(await failureOf(cluster.get(PODS, POD))).toMatchObject({ code: 401, reason: "Unauthorized" });
});

it("calls whose token is refused leave no connections open", async () => {
  const sockets = new Set<unknown>();
  const server = await serve(({ socket, headers }, response) => {
    sockets.add(socket);
    answer(response, headers.authorization === "Bearer new" ? 200 : 401, OBJECT);
  });
  const tokens = ["old", "new", "old", "new", "old", "new"];
  const token = async () => tokens.shift();
  const cluster = connectCluster({ server, token, renewToken: async () => true });
  while (tokens.length > 0) await cluster.create(PODS, OBJECT);
  expect(sockets.size).toBeLessThanOrEqual(2);
});

it("a call that times out while it waits for one of 64 connections was not sent", async () => {
  let asked = 0;
  const server = await serve(() => {
    asked++;
  });
  const cluster = connectCluster({ server, requestTimeoutMs: 100 });
  const abort = new AbortController();
  const { signal } = abort;
  const watching = Array.from({ length: 64 }, async () => {
    for await (const _ of cluster.watch(PODS, { resourceVersion: "1", timeoutSeconds: 60, signal })) break;
  });
  await vi.waitFor(() => expect(asked).toBe(64), PATIENT);
  expect(await failureOf(cluster.create(PODS, OBJECT))).toMatchObject({ reason: "Timeout", isOutcomeKnown: true });
  abort.abort();
  await Promise.all(watching);
  expect(asked).toBe(64);
});

it.each([
  [400, "BadRequest"],
  [403, "Forbidden"],
])("a %i answer whose body is cut off is still reported as %s", async (code, reason) => {
  const server = await serve((_, response) => {
    response.writeHead(code, { "Content-Length": "100" });
    response.write("{", () => response.destroy());
  });
  const cluster = connectCluster({ server });
  expect(await failureOf(cluster.get(PODS, POD))).toMatchObject({ code, reason });
  const watching = async () => {
    for await (const _ of cluster.watch(PODS, { resourceVersion: "1", timeoutSeconds: 5 })) break;
  };
  expect(await failureOf(watching())).toMatchObject({ code, reason });
});

describe("onRequest:", () => {
  it("onRequest receives verb, kind, code, time and bytes of every request", async () => {
    const records: RequestRecord[] = [];
    const server = await serve(({ method }, response) => {
      if (method === "DELETE") answer(response, 403, { kind: "Status", code: 403, message: "no" });
      else answer(response, 200, '{"items":[],"metadata":{}}');
    });
    const cluster = connectCluster({ server, onRequest: (record) => records.push(record) });
    const began = performance.now();
    await cluster.get(PODS, POD);
    await cluster.list(SIDECARSETS);
    await cluster.create(EVENTS, OBJECT);
    await cluster.create(PODS, OBJECT, { subresource: "eviction" });
    await cluster.patch(PODS, POD, { type: "json", operations: [] }, { subresource: "status" });
    await failureOf(cluster.delete(PODS, POD));
    const elapsed = performance.now() - began;
    expect(records.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`)).toEqual([
      "GET pods 200",
      "LIST sidecarsets 200",
      "CREATE events 200",
      "CREATE pods/eviction 200",
      "PATCH pods/status 200",
      "DELETE pods 403",
    ]);
    expect(records.slice(0, 5).map(({ bytes }) => bytes)).toEqual([26, 26, 26, 26, 26]);
    const told = records.reduce((sum, { ms }) => sum + ms, 0);
    expect(told).toBeGreaterThanOrEqual(0);
    expect(told).toBeLessThanOrEqual(elapsed + records.length);
  });

  it("onRequest receives code 0 once for a request without an answer, because a timeout is not retried", async () => {
    const records: RequestRecord[] = [];
    const onRequest = (record: RequestRecord) => void records.push(record);
    const silent = await serve(() => undefined);
    await failureOf(connectCluster({ server: silent, requestTimeoutMs: 50, onRequest }).get(PODS, POD));
    const gone = await serve(() => undefined);
    closeServers();
    await failureOf(connectCluster({ server: gone, onRequest }).list(PODS));
    const none = { code: 0, bytes: 0, ms: expect.any(Number) };
    expect(records).toEqual([
      { ...none, verb: "GET", resource: "pods" },
      { ...none, verb: "LIST", resource: "pods" },
    ]);
  });
});

it("limits.atOnce limits the calls that run at the same time", async () => {
  const underWay: (() => void)[] = [];
  let most = 0;
  const server = await serve((_, response) => {
    most = Math.max(
      most,
      underWay.push(() => answer(response, 200, OBJECT)),
    );
    // The server waits for a third request, which would exceed the limit, before it answers the two.
    if (underWay.length === 2) setTimeout(() => underWay.splice(0).map((release) => release()), 20);
  });
  const cluster = connectCluster({ server, limits: { qps: 0, burst: 0, atOnce: 2 } });
  await Promise.all(Array.from({ length: 10 }, () => cluster.get(PODS, POD)));
  expect(most).toBe(2);
});

describe("a list with keep:", () => {
  const listOf = async (code: number, body: string) => {
    const server = await serve((_, response) => answer(response, code, body));
    const keep = ({ metadata }: { readonly metadata?: { readonly name?: string } }) => metadata?.name;
    return connectCluster({ server }).list(PODS, { keep });
  };

  it("a list with keep returns the kept values and the list without its items", async () => {
    const items = [{ metadata: { name: "a" } }, { metadata: {} }, { metadata: { name: "b" } }];
    const list = { kind: "PodList", metadata: { resourceVersion: "7" } };
    expect(await listOf(200, JSON.stringify({ ...list, items }))).toEqual({ ...list, items: [], kept: ["a", "b"] });
  });

  it("a list with keep fails for the same reasons as any other list", async () => {
    const status = { kind: "Status", code: 403, reason: "Forbidden", message: "no" };
    expect(await failureOf(listOf(403, JSON.stringify(status)))).toMatchObject({ code: 403, message: "no" });
    expect(await failureOf(listOf(300, "{}"))).toMatchObject({ code: 300, reason: "UnreadableAnswer" });
    const odd = await failureOf(listOf(200, "<html>"));
    expect(odd).toMatchObject({ reason: "UnreadableAnswer", cause: expect.any(SyntaxError) });
    expect(odd.message).toContain("is not JSON: is this an API server?");
  });

  it("a list with keep that is cut off at every attempt fails with an unknown outcome", async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { "Content-Length": "100" });
      response.write('{"items":[{', () => response.destroy());
    });
    const error = await failureOf(connectCluster({ server }).list(PODS, { keep: () => 1 }));
    expect(error).toMatchObject({ reason: "UnreadableAnswer", isOutcomeKnown: false });
    expect(error.message).toContain("ends in the middle");
  });

  it("a list with keep that is cut off once is read again", async () => {
    let asked = 0;
    const server = await serve((_, response) => {
      asked++;
      if (asked > 1) return answer(response, 200, { items: [OBJECT], metadata: {} });
      response.writeHead(200, { "Content-Length": "100" });
      response.write('{"items":[{', () => response.destroy());
    });
    const { kept } = await connectCluster({ server }).list(PODS, { keep: () => 1 });
    expect([asked, kept]).toEqual([2, [1]]);
  });
});

describe("waits before retries:", () => {
  /** Returns the milliseconds from each request to the next one. */
  const waitsOf = async (troubles: number, code: number, headers?: Readonly<Record<string, string>>) => {
    const times: number[] = [];
    const server = await serve((_, response) => {
      times.push(performance.now());
      if (times.length > troubles) answer(response, 200, OBJECT);
      else answer(response, code, "busy", headers);
    });
    await connectCluster({ server }).get(PODS, POD);
    return times.slice(1).map((time, index) => time - (times[index] ?? 0));
  };

  it("each retry of a read waits longer than the one before", async () => {
    const waits = await waitsOf(3, 500);
    expect(waits).toHaveLength(3);
    for (const [index, atLeast] of [95, 195, 395].entries()) expect(waits[index]).toBeGreaterThan(atLeast);
  });

  it("a retry waits a second after 429, and as long as Retry-After says after 503", async () => {
    const waits = await Promise.all([waitsOf(1, 429), waitsOf(1, 503, { "Retry-After": "1" })]);
    for (const wait of waits.flat()) expect(wait).toBeGreaterThan(950);
    expect(waits.flat()).toHaveLength(2);
  });
});
