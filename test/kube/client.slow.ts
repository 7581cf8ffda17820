import type http from "node:http";
import https from "node:https";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { generate } from "selfsigned";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { RequestRecord } from "../../shared/kube/transport.ts";
import { PATIENT } from "../support/patient.ts";
import { answer, closeServers, failureOf, listen, serve, stopTimeLimits } from "./servers.ts";

afterEach(closeServers);

const pod = { namespace: "shop", name: "a" };
/** that are open at once, at most */
const CONNECTIONS = 64;
const OBJECT = { metadata: { name: "a", resourceVersion: "1" } };

describe("a call is one request", () => {
  it("spells paths, queries and bodies as the API server reads them", async () => {
    const seen: string[] = [];
    const server = await serve((request, response, body) => {
      const type = request.headers["content-type"] ?? "";
      seen.push(`${request.method} ${request.url} ${type} ${body}`.trim());
      answer(response, 200, { metadata: { name: "a", resourceVersion: "1" }, items: [] });
    });
    const cluster = connectCluster({ server });
    await cluster.get(PODS, pod);
    await cluster.list(PODS, { labelSelector: "app in (a,b)", limit: 500, continue: "next" });
    await cluster.list(SIDECARSETS);
    await cluster.create(PODS, { metadata: { name: "a", namespace: "shop" } }, { dryRun: true });
    await cluster.patch(PODS, pod, { type: "strategic", body: { a: 1 } }, { subresource: "status" });
    await cluster.patch(PODS, pod, { type: "json", operations: [{ op: "remove", path: "/a" }] });
    await cluster.delete(PODS, pod, { uid: "u1" });
    expect(seen).toEqual([
      "GET /api/v1/namespaces/shop/pods/a",
      "GET /api/v1/pods?labelSelector=app+in+%28a%2Cb%29&limit=500&continue=next",
      "GET /apis/apps.kruise.io/v1beta1/sidecarsets",
      'POST /api/v1/namespaces/shop/pods?dryRun=All application/json {"metadata":{"name":"a","namespace":"shop"}}',
      'PATCH /api/v1/namespaces/shop/pods/a/status application/strategic-merge-patch+json {"a":1}',
      'PATCH /api/v1/namespaces/shop/pods/a application/json-patch+json [{"op":"remove","path":"/a"}]',
      'DELETE /api/v1/namespaces/shop/pods/a application/json {"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1"}}',
    ]);
  });

  it("knows the API server's clock from any answer that tells it, also a refusal", async () => {
    const dates = [undefined, "Thu, 01 Jan 2026 00:00:00 GMT", "no time at all"];
    const server = await serve((_, response) => {
      response.sendDate = false;
      const date = dates.shift();
      if (date !== undefined) response.setHeader("date", date);
      answer(response, dates.length === 1 ? 404 : 200, { kind: "Status", code: 404, reason: "NotFound" });
    });
    const cluster = connectCluster({ server });
    expect(cluster.serverTimeMs?.()).toBeUndefined();
    await cluster.get(PODS, pod);
    expect(cluster.serverTimeMs?.()).toBeUndefined();
    const beganMs = performance.now();
    await failureOf(cluster.get(PODS, pod));
    await cluster.get(PODS, pod);
    const aheadMs = (cluster.serverTimeMs?.() ?? 0) - Date.parse("2026-01-01T00:00:00Z");
    expect(aheadMs).toBeGreaterThanOrEqual(0);
    expect(aheadMs).toBeLessThanOrEqual(performance.now() - beganMs);
  });

  it("writes what it creates as Go does, to the byte", async () => {
    const seen: string[] = [];
    const server = await serve((_, response, body) => {
      seen.push(body);
      answer(response, 200, {});
    });
    const data = { command: 'a && b < c > d \u2028\u2029 "é"' };
    await connectCluster({ server }).create(PODS, {
      metadata: { name: "a", namespace: "shop" },
      data,
    } as KubernetesObject);
    const [body = ""] = seen;
    expect(body).toContain(String.raw`"a \u0026\u0026 b \u003c c \u003e d \u2028\u2029 \"é\""`);
    expect(JSON.parse(body)).toMatchObject({ data });
  });

  it("keeps the connection, sends the token and asks for metadata only", async () => {
    const sockets = new Set<unknown>();
    const headers: http.IncomingHttpHeaders[] = [];
    const server = await serve((request, response) => {
      sockets.add(request.socket);
      headers.push(request.headers);
      answer(response, 200, {});
    });
    let token = "first";
    const cluster = connectCluster({ server, token: async () => token });
    await cluster.patch(PODS, pod, { type: "json", operations: [] }, { answer: "metadata" });
    token = "second";
    await cluster.get(PODS, pod);
    expect(sockets.size).toBe(1);
    expect(headers.map(({ authorization }) => authorization)).toEqual(["Bearer first", "Bearer second"]);
    expect(headers[0]?.accept).toContain("as=PartialObjectMetadata");
  });

  it("200 at once, reads and writes and watches that one signal ends, have Node warn of nothing", async () => {
    const warnings: string[] = [];
    const note = ({ message }: Error) => void warnings.push(message);
    process.on("warning", note);
    let asked = 0;
    const server = await serve((request, response) => {
      asked++;
      if (request.url?.includes("watch=true")) response.writeHead(200).flushHeaders();
      else answer(response, 200, { ...OBJECT, items: [] });
    });
    const cluster = connectCluster({ server });
    const abort = new AbortController();
    const many = <T>(call: () => Promise<T>) => Promise.all(Array.from({ length: 200 }, call));
    const watching = many(async () => {
      const options = { resourceVersion: "1", timeoutSeconds: 60, signal: abort.signal };
      for await (const event of cluster.watch(PODS, options)) expect(event).toBeUndefined();
    });
    await vi.waitFor(() => expect(asked).toBeGreaterThan(0), PATIENT);
    abort.abort();
    await watching;
    await many(() => cluster.list(PODS, {}));
    await many(() => cluster.create(PODS, { metadata: { ...OBJECT.metadata, namespace: "shop" } }));
    // Warnings are told a turn of the event loop later.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", note);
    expect(warnings).toEqual([]);
    expect(asked).toBeGreaterThan(400);
  });

  it("reads a compressed answer and tells the observer what came over the wire", async () => {
    const records: RequestRecord[] = [];
    const body = gzipSync(JSON.stringify({ metadata: { resourceVersion: "1" }, items: new Array(1000).fill({}) }));
    const server = await serve((_, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" });
      response.end(body);
    });
    const cluster = connectCluster({ server, onRequest: (record) => records.push(record) });
    expect((await cluster.list(PODS)).items).toHaveLength(1000);
    expect(records).toEqual([
      { verb: "LIST", resource: "pods", code: 200, ms: expect.any(Number), bytes: body.length },
    ]);
  });
});

describe("what is refused", () => {
  it.each([
    {
      name: "a Status keeps its message, reason and code",
      code: 409,
      body: { kind: "Status", code: 409, reason: "Conflict", message: "the object has been modified" },
      expected: { code: 409, reason: "Conflict", isOutcomeKnown: true, message: "the object has been modified" },
    },
    {
      name: "401 says to renew the credentials",
      code: 401,
      body: { kind: "Status", code: 401, reason: "Unauthorized", message: "Unauthorized" },
      expected: { code: 401, isOutcomeKnown: true, message: expect.stringContaining("expired or not valid") },
    },
    {
      name: "404 of a proxy in Go says nothing about the object",
      code: 404,
      body: "404 page not found\n",
      expected: { code: 502, isOutcomeKnown: false, message: expect.stringContaining("proxy or load balancer") },
    },
    {
      name: "404 of a proxy says nothing about the object",
      code: 404,
      body: "<html><title>404 Not Found</title>nginx</html>",
      expected: { code: 502, isOutcomeKnown: false, message: expect.stringContaining("proxy or load balancer") },
    },
    {
      name: "404 without a word says nothing about the object",
      code: 404,
      body: "",
      expected: { code: 502, isOutcomeKnown: false, message: expect.stringContaining("proxy or load balancer") },
    },
    {
      name: "503 from a proxy leaves the outcome open",
      code: 503,
      body: "<html>no healthy upstream</html>",
      expected: { code: 503, reason: "ServiceUnavailable", isOutcomeKnown: false },
    },
    {
      name: "200 that is not JSON leaves the outcome open",
      code: 200,
      body: "<html>hello</html>",
      expected: { code: 200, isOutcomeKnown: false, message: expect.stringContaining("is not JSON") },
    },
    {
      name: "neither is one without a place to go to",
      code: 300,
      body: "{}",
      expected: { code: 300, message: expect.stringContaining("redirect") },
    },
    {
      name: "a redirect is no answer",
      code: 302,
      body: "",
      expected: { code: 302, message: expect.stringContaining("redirect") },
    },
  ])("$name", async ({ code, body, expected }) => {
    const server = await serve((_, response) => answer(response, code, body));
    expect(
      await failureOf(connectCluster({ server }).patch(PODS, pod, { type: "json", operations: [] })),
    ).toMatchObject(expected);
  });

  it("429 is obeyed by a read and never repeated for a write", async () => {
    let requests = 0;
    const server = await serve((_, response) => {
      requests++;
      if (requests % 2 === 1) answer(response, 429, "slow down", { "Retry-After": "0" });
      else answer(response, 200, { metadata: { name: "a" } });
    });
    const cluster = connectCluster({ server });
    await cluster.get(PODS, pod);
    expect(requests).toBe(2);
    const error = await failureOf(cluster.patch(PODS, pod, { type: "json", operations: [] }));
    expect(error).toMatchObject({ code: 429, reason: "TooManyRequests", retryAfterSeconds: 0, isOutcomeKnown: true });
    expect(requests).toBe(3);
  });
});

describe("a read whose answer is no answer", () => {
  const cut = (response: http.ServerResponse) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write('{"metadata"', () => response.destroy());
  };
  const TROUBLE: Readonly<Record<string, (response: http.ServerResponse) => void>> = {
    "500": (response) => answer(response, 500, { kind: "Status", code: 500, message: "leader changed" }),
    "503 of a balancer": (response) => answer(response, 503, "<html>no healthy upstream</html>"),
    "504 with Retry-After": (response) => answer(response, 504, "late", { "Retry-After": "0" }),
    "an answer that is cut": cut,
    "a closed connection": (response) => response.destroy(),
  };

  it.each(Object.entries(TROUBLE))("%s: is repeated, 3 times at most; a write is not", async (_, strike) => {
    let requests = 0;
    let left = 0;
    const server = await serve((_, response) => {
      requests++;
      left--;
      if (left >= 0) strike(response);
      else answer(response, 200, { metadata: { name: "a" } });
    });
    const requestsOf = async (troubles: number, call: (cluster: Cluster) => Promise<unknown>) => {
      requests = 0;
      left = troubles;
      const end = await call(connectCluster({ server })).then(() => "done", String);
      return [requests, end === "done"];
    };
    expect(await requestsOf(3, (cluster) => cluster.get(PODS, pod))).toEqual([4, true]);
    expect(await requestsOf(4, (cluster) => cluster.list(PODS))).toEqual([4, false]);
    expect(await requestsOf(1, (cluster) => cluster.delete(PODS, pod))).toEqual([1, false]);
  });
});

describe("trouble on the way", () => {
  const patch = (server: string, more = {}) =>
    failureOf(connectCluster({ server, ...more }).patch(PODS, pod, { type: "json", operations: [] }));

  it("nobody listens: known not to be carried out", async () => {
    const port = await listen(net.createServer());
    closeServers();
    const error = await patch(`https://127.0.0.1:${port}`);
    expect(error).toMatchObject({ code: 0, reason: "ConnectionRefused", isOutcomeKnown: true });
    expect(error.message).toContain(`nothing listens on https://127.0.0.1:${port}`);
  });

  it("a name that does not exist", async () => {
    expect(await patch("https://no-such-host.invalid")).toMatchObject({ reason: "NameNotFound", isOutcomeKnown: true });
  });

  it("a certificate of somebody else, and the right certificate authority", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
      algorithm: "sha256",
      keySize: 2048,
      extensions: [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
    });
    const port = await listen(https.createServer({ cert, key }, (_, response) => answer(response, 200, {})));
    const server = `https://127.0.0.1:${port}`;
    expect(await patch(server)).toMatchObject({ reason: "CertificateNotTrusted", isOutcomeKnown: true });
    await connectCluster({ server, certificateAuthority: cert }).get(PODS, pod);
    await connectCluster({ server, isInsecure: true }).get(PODS, pod);
    expect(await patch(server, { certificateAuthority: "nonsense" })).toMatchObject({ isOutcomeKnown: true });
  });

  it("TLS spoken to a plain port", async () => {
    const server = (await serve((_, response) => answer(response, 200, {}))).replace("http:", "https:");
    expect(await patch(server)).toMatchObject({ reason: "NotTLS", isOutcomeKnown: true });
  });

  it("no answer in time: the outcome is open", async () => {
    stopTimeLimits();
    const server = await serve(() => void vi.advanceTimersByTime(50));
    const error = await patch(server, { requestTimeoutMs: 50 });
    expect(error).toMatchObject({ reason: "Timeout", isOutcomeKnown: false });
    expect(error.message).toContain("did not answer within 50 ms");
  });

  it("a connection closed instead of an answer: the outcome is open", async () => {
    const server = await serve((request) => request.socket.destroy());
    expect(await patch(server)).toMatchObject({ reason: "ConnectionReset", isOutcomeKnown: false });
  });

  it("a connection that another request has just left, closed instead of an answer: the outcome is open", async () => {
    const held: (() => void)[] = [];
    const server = await serve((request, response) => {
      if (request.url?.endsWith("/last")) return void request.socket.destroy();
      held.push(() => answer(response, 200, OBJECT));
      if (held.length === CONNECTIONS) for (const release of held) release();
    });
    const limits = { qps: 0, burst: 0, atOnce: 2 * CONNECTIONS };
    const cluster = connectCluster({ server, limits });
    const write = (name: string) => cluster.patch(PODS, { namespace: "shop", name }, { type: "merge", body: {} });
    const others = Array.from({ length: CONNECTIONS }, () => write("a"));
    expect(await failureOf(write("last"))).toMatchObject({ reason: "ConnectionReset", isOutcomeKnown: false });
    await Promise.all(others);
  });

  it("an answer cut in the middle, plain or compressed: the outcome is open", async () => {
    for (const encoding of ["identity", "gzip"]) {
      const server = await serve((_, response) => {
        const body = encoding === "gzip" ? gzipSync("{}") : Buffer.from('{"metadata":{}}');
        response.writeHead(200, { "Content-Encoding": encoding, "Content-Length": String(body.length) });
        response.write(body.subarray(0, body.length - 2), () => response.destroy());
      });
      const error = await patch(server);
      expect(error).toMatchObject({ reason: "UnreadableAnswer", isOutcomeKnown: false });
      expect(error.message).toContain("ends in the middle");
    }
  });

  it("credentials that cannot be had are a KubeError too", async () => {
    const server = await serve((_, response) => answer(response, 200, {}));
    expect(await patch(server, { token: () => Promise.reject(new Error("no plugin")) })).toMatchObject({
      code: 0,
      isOutcomeKnown: true,
    });
  });
});

describe("a watch", () => {
  const line = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`;
  const watch = (server: string, signal?: AbortSignal) =>
    connectCluster({ server }).watch(PODS, { resourceVersion: "7", timeoutSeconds: 5, ...(signal ? { signal } : {}) });
  const collect = async (server: string, signal?: AbortSignal) => {
    const types: string[] = [];
    for await (const { type } of watch(server, signal)) types.push(type);
    return types;
  };

  it("yields events cut anywhere, bookmarks too, and ends with the stream", async () => {
    let url = "";
    const text = line("ADDED", { metadata: { name: "ä" } }) + line("MODIFIED", {}) + line("BOOKMARK", {});
    const server = await serve(async (request, response) => {
      url = request.url ?? "";
      for (const byte of Buffer.from(text)) {
        response.write(Buffer.from([byte]));
      }
      response.end();
    });
    expect(await collect(server)).toEqual(["ADDED", "MODIFIED", "BOOKMARK"]);
    expect(url).toBe("/api/v1/pods?resourceVersion=7&watch=true&allowWatchBookmarks=true&timeoutSeconds=5");
  });

  it("throws what an ERROR event stands for", async () => {
    const server = await serve((_, response) => {
      response.end(line("ADDED", {}) + line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "old" }));
    });
    expect(await failureOf(collect(server))).toMatchObject({ code: 410, reason: "Expired" });
  });

  it("throws when it is refused", async () => {
    const server = await serve((_, response) => answer(response, 403, { kind: "Status", code: 403, message: "no" }));
    expect(await failureOf(collect(server))).toMatchObject({ code: 403, message: "no" });
  });

  it("ends when the connection breaks, without the half event", async () => {
    const server = await serve((_, response) => {
      response.write(`${line("ADDED", {})}{"type":"MODIFIED`, () => response.destroy());
    });
    expect(await collect(server)).toEqual(["ADDED"]);
  });

  it("ends when it is aborted, before and in the middle", async () => {
    const server = await serve((_, response) => void response.write(line("ADDED", {})));
    expect(await collect(server, AbortSignal.abort())).toEqual([]);
    const abort = new AbortController();
    const types: string[] = [];
    for await (const { type } of watch(server, abort.signal)) {
      types.push(type);
      setImmediate(() => abort.abort());
    }
    expect(types).toEqual(["ADDED"]);
  });

  it("is closed by a reader that stops", async () => {
    let isClosed: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => {
      isClosed = resolve;
    });
    const server = await serve((_, response) => {
      response.on("close", isClosed);
      response.write(line("ADDED", {}));
    });
    for await (const _ of watch(server)) break;
    await closed;
  });
});

describe("a name that is none", () => {
  it.each(["", ".", ".."])("%j is no part of a call", async (name) => {
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(request.url);
      answer(response, 200, { metadata: {}, items: [] });
    });
    const cluster = connectCluster({ server: url, userAgent: "test" });
    const calls = [
      () => cluster.get(PODS, { namespace: "shop", name }),
      () => cluster.get(PODS, { namespace: name, name: "a" }),
      () => cluster.delete(PODS, { namespace: "shop", name }),
      () => cluster.patch(PODS, { namespace: "shop", name }, { type: "merge", body: {} }),
      () => cluster.list(PODS, { namespace: name }),
    ];
    const message = `there is no object named ${JSON.stringify(name)}`;
    const error = { code: 404, reason: "NotFound", isOutcomeKnown: true, message };
    for (const call of calls) expect(await failureOf((async () => call())())).toMatchObject(error);
    expect([calls.length, asked]).toEqual([5, []]);
  });
});
