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
/** The most connections that are open at once. */
const CONNECTIONS = 64;
const OBJECT = { metadata: { name: "a", resourceVersion: "1" } };

describe("connectCluster:", () => {
  it("a call sends its path, query and body as the API server expects them", async () => {
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

  /**
   * Returns the hours between the server's time and this machine's, as the client computes them after answers with
   * these dates.
   */
  async function hoursAfter(...dates: readonly (number | "none" | "invalid")[]) {
    const left = [...dates];
    const server = await serve((_, response) => {
      response.sendDate = false;
      const hours = left.shift();
      if (hours === "invalid") response.setHeader("date", "no time at all");
      else if (hours !== "none")
        response.setHeader("date", new Date(Date.now() + (hours ?? 0) * HOUR_MS).toUTCString());
      answer(response, left.length === 1 ? 404 : 200, { kind: "Status", code: 404, reason: "NotFound" });
    });
    const cluster = connectCluster({ server });
    const seen: (number | undefined)[] = [];
    for (const _ of dates) {
      await cluster.get(PODS, pod).catch(() => undefined);
      const ms = cluster.serverTimeMs?.();
      seen.push(ms === undefined ? undefined : Math.abs(Math.round((ms - Date.now()) / HOUR_MS)));
    }
    return seen;
  }
  const HOUR_MS = 3_600_000;

  it("serverTimeMs follows the Date header of any answer that has a valid one, also of a 404", async () => {
    expect(await hoursAfter("none", 0, "invalid", 0)).toEqual([undefined, 0, 0, 0]);
  });

  it("a Date header that is an hour off counts once the next answer confirms it", async () => {
    expect(await hoursAfter(0, 1, 0, 1, 1)).toEqual([0, 0, 0, 0, 1]);
    expect(await hoursAfter(1, 0, 1, 1)).toEqual([undefined, 0, 0, 1]);
  });

  it("create escapes its JSON as Go does, byte for byte", async () => {
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

  it("calls share one connection, send the current token and can ask for metadata only", async () => {
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

  it("200 concurrent reads, writes and watches with one abort signal cause no Node warning", async () => {
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
    // Warnings arrive one turn of the event loop later.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", note);
    expect(warnings).toEqual([]);
    expect(asked).toBeGreaterThan(400);
  });

  it("a list reads a gzip answer and reports the compressed bytes to onRequest", async () => {
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

describe("the KubeError of a patch:", () => {
  it.each([
    {
      name: "the message, reason and code of a Status",
      code: 409,
      body: { kind: "Status", code: 409, reason: "Conflict", message: "the object has been modified" },
      expected: { code: 409, reason: "Conflict", isOutcomeKnown: true, message: "the object has been modified" },
    },
    {
      name: "a hint to renew the credentials for 401",
      code: 401,
      body: { kind: "Status", code: 401, reason: "Unauthorized", message: "Unauthorized" },
      expected: { code: 401, isOutcomeKnown: true, message: expect.stringContaining("expired or not valid") },
    },
    {
      name: "an unknown outcome, not NotFound, for the 404 of a proxy in Go",
      code: 404,
      body: "404 page not found\n",
      expected: { code: 502, isOutcomeKnown: false, message: expect.stringContaining("proxy or load balancer") },
    },
    {
      name: "an unknown outcome, not NotFound, for the 404 page of a proxy",
      code: 404,
      body: "<html><title>404 Not Found</title>nginx</html>",
      expected: { code: 502, isOutcomeKnown: false, message: expect.stringContaining("proxy or load balancer") },
    },
    {
      name: "an unknown outcome, not NotFound, for a 404 without a body",
      code: 404,
      body: "",
      expected: { code: 502, isOutcomeKnown: false, message: expect.stringContaining("proxy or load balancer") },
    },
    {
      name: "an unknown outcome for a 503 of a proxy",
      code: 503,
      body: "<html>no healthy upstream</html>",
      expected: { code: 503, reason: "ServiceUnavailable", isOutcomeKnown: false },
    },
    {
      name: "an unknown outcome for a 200 whose body is not JSON",
      code: 200,
      body: "<html>hello</html>",
      expected: { code: 200, isOutcomeKnown: false, message: expect.stringContaining("is not JSON") },
    },
    {
      name: "a redirect for a 300 without a Location",
      code: 300,
      body: "{}",
      expected: { code: 300, message: expect.stringContaining("redirect") },
    },
    {
      name: "a redirect for a 302",
      code: 302,
      body: "",
      expected: { code: 302, message: expect.stringContaining("redirect") },
    },
  ])("the error of a patch has $name", async ({ code, body, expected }) => {
    const server = await serve((_, response) => answer(response, code, body));
    expect(
      await failureOf(connectCluster({ server }).patch(PODS, pod, { type: "json", operations: [] })),
    ).toMatchObject(expected);
  });

  it("a read is repeated after 429, and a write is not", async () => {
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

describe("retries:", () => {
  const cut = (response: http.ServerResponse) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write('{"metadata"', () => response.destroy());
  };
  const TROUBLE: Readonly<Record<string, (response: http.ServerResponse) => void>> = {
    "a 500 answer": (response) => answer(response, 500, { kind: "Status", code: 500, message: "leader changed" }),
    "a 503 answer of a load balancer": (response) => answer(response, 503, "<html>no healthy upstream</html>"),
    "a 504 answer with Retry-After": (response) => answer(response, 504, "late", { "Retry-After": "0" }),
    "an answer that is cut off": cut,
    "a closed connection": (response) => response.destroy(),
  };

  it.each(Object.entries(TROUBLE))(
    "a read is retried at most three times after %s, and a write is not retried",
    async (_, strike) => {
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
    },
  );
});

describe("connection failures:", () => {
  const patch = (server: string, more = {}) =>
    failureOf(connectCluster({ server, ...more }).patch(PODS, pod, { type: "json", operations: [] }));

  it("a write is known not to be carried out when nothing listens on the port", async () => {
    const port = await listen(net.createServer());
    closeServers();
    const error = await patch(`https://127.0.0.1:${port}`);
    expect(error).toMatchObject({ code: 0, reason: "ConnectionRefused", isOutcomeKnown: true });
    expect(error.message).toContain(`nothing listens on https://127.0.0.1:${port}`);
  });

  it("a write to a host name that does not resolve is known not to be carried out", async () => {
    expect(await patch("https://no-such-host.invalid")).toMatchObject({ reason: "NameNotFound", isOutcomeKnown: true });
  });

  it("a call trusts a server certificate only with the right certificate authority, or with isInsecure", async () => {
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

  it("a TLS call to a plain HTTP port fails with NotTLS", async () => {
    const server = (await serve((_, response) => answer(response, 200, {}))).replace("http:", "https:");
    expect(await patch(server)).toMatchObject({ reason: "NotTLS", isOutcomeKnown: true });
  });

  it("the outcome of a write is unknown when no answer comes in time", async () => {
    stopTimeLimits();
    const server = await serve(() => void vi.advanceTimersByTime(50));
    const error = await patch(server, { requestTimeoutMs: 50 });
    expect(error).toMatchObject({ reason: "Timeout", isOutcomeKnown: false });
    expect(error.message).toContain("did not answer within 50 ms");
  });

  it("the outcome of a write is unknown when the server closes the connection", async () => {
    const server = await serve((request) => request.socket.destroy());
    expect(await patch(server)).toMatchObject({ reason: "ConnectionReset", isOutcomeKnown: false });
  });

  it("the outcome of a write is unknown when the server closes a connection that an earlier request used", async () => {
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

  it("the outcome of a write is unknown when its answer is cut off, plain or gzip", async () => {
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

  it("a token that cannot be read fails the call with a KubeError", async () => {
    const server = await serve((_, response) => answer(response, 200, {}));
    expect(await patch(server, { token: () => Promise.reject(new Error("no plugin")) })).toMatchObject({
      code: 0,
      isOutcomeKnown: true,
    });
  });
});

describe("watch:", () => {
  const line = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`;
  const watch = (server: string, signal?: AbortSignal) =>
    connectCluster({ server }).watch(PODS, { resourceVersion: "7", timeoutSeconds: 5, ...(signal ? { signal } : {}) });
  const collect = async (server: string, signal?: AbortSignal) => {
    const types: string[] = [];
    for await (const { type } of watch(server, signal)) types.push(type);
    return types;
  };

  it("a watch yields every event and bookmark, wherever the stream is split, and ends with the stream", async () => {
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

  it("a watch throws the Status of an ERROR event", async () => {
    const server = await serve((_, response) => {
      response.end(line("ADDED", {}) + line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "old" }));
    });
    expect(await failureOf(collect(server))).toMatchObject({ code: 410, reason: "Expired" });
  });

  it("a watch throws when the API server refuses it", async () => {
    const server = await serve((_, response) => answer(response, 403, { kind: "Status", code: 403, message: "no" }));
    expect(await failureOf(collect(server))).toMatchObject({ code: 403, message: "no" });
  });

  it("a watch ends when the connection breaks and drops the incomplete event", async () => {
    const server = await serve((_, response) => {
      response.write(`${line("ADDED", {})}{"type":"MODIFIED`, () => response.destroy());
    });
    expect(await collect(server)).toEqual(["ADDED"]);
  });

  it("a watch ends when its signal is aborted before it starts or while it runs", async () => {
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

  it("a watch closes its request when its reader stops", async () => {
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

describe("invalid names:", () => {
  it.each(["", ".", "..", "a/b", "a%b", "a".repeat(254)])(
    "a call with the name %j fails with 404 and sends no request",
    async (name) => {
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
    },
  );
});
