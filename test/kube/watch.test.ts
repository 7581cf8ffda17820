/** A watch at its edges: how it is asked for, what it makes of odd lines, and how it ends. */
import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { connectCluster } from "../../shared/kube/client.ts";
import { type Cluster, PODS, type WatchOptions } from "../../shared/kube/port.ts";
import type { RequestRecord } from "../../shared/kube/transport.ts";
import { PATIENT } from "../support/patient.ts";
import { answer, closeServers, failureOf, serve } from "./servers.ts";

afterEach(closeServers);

const FROM = { resourceVersion: "7", timeoutSeconds: 5 };
const ADDED = '{"type":"ADDED","object":{}}';

async function typesOf(cluster: Cluster, options: Partial<WatchOptions> = {}): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { type } of cluster.watch(PODS, { ...FROM, ...options })) types.push(type);
  return types;
}

async function typesIn(text: string, options?: Partial<WatchOptions>): Promise<readonly string[]> {
  const server = await serve((_, response) => response.end(text));
  return typesOf(connectCluster({ server }), options);
}

/** After so long what was written before is read, unless the machine is very busy: then they come together. */
const APART_MS = 30;

describe("a watch is asked for", () => {
  it("with its namespace and selectors, and told of when it is there", async () => {
    let asked = "";
    const server = await serve(({ url = "" }, response) => {
      asked = url;
      response.end();
    });
    const options = { namespace: "shop", labelSelector: "a", fieldSelector: "b=c" };
    let opened = 0;
    expect(await typesOf(connectCluster({ server }), { ...options, onOpen: () => opened++ })).toEqual([]);
    const { pathname, searchParams } = new URL(asked, server);
    expect(pathname).toBe("/api/v1/namespaces/shop/pods");
    expect(Object.fromEntries(searchParams)).toEqual({
      labelSelector: "a",
      fieldSelector: "b=c",
      resourceVersion: "7",
      watch: "true",
      allowWatchBookmarks: "true",
      timeoutSeconds: "5",
    });
    expect(opened).toBe(1);
  });

  it("and what came of it is told those who count", async () => {
    const records: RequestRecord[] = [];
    let code = 200;
    const server = await serve((_, response) => answer(response, code, ""));
    const cluster = connectCluster({ server, onRequest: (record) => records.push(record) });
    const began = performance.now();
    await typesOf(cluster);
    code = 403;
    await failureOf(typesOf(cluster));
    closeServers();
    await failureOf(typesOf(cluster));
    const watch = { verb: "WATCH", resource: "pods", ms: expect.any(Number), bytes: 0 };
    expect(records).toEqual([200, 403, 0].map((told) => ({ ...watch, code: told })));
    for (const { ms } of records) expect(ms).toBeLessThanOrEqual(performance.now() - began + 1);
  });
});

describe("of a watch", () => {
  it("lines that are empty are no events", async () => {
    expect(await typesIn(`\n${ADDED}\n \n\n${ADDED}\n`)).toEqual(["ADDED", "ADDED"]);
  });

  it("an event that comes in two pieces is one", async () => {
    const server = await serve((_, response) => {
      response.write(ADDED.slice(0, 9));
      setTimeout(() => response.end(`${ADDED.slice(9)}\n`), APART_MS);
    });
    expect(await typesOf(connectCluster({ server }))).toEqual(["ADDED"]);
  });

  it("a line that is no JSON is a failure", async () => {
    const error = await failureOf(typesIn(`${ADDED}\n{"type"\n`));
    expect(error).toMatchObject({ code: 200, reason: "UnreadableAnswer", cause: expect.any(SyntaxError) });
    expect(error.message).toContain("has a watch event that is not JSON");
  });

  it("an ERROR without a code is one of the server", async () => {
    expect(await failureOf(typesIn('{"type":"ERROR","object":{}}\n'))).toMatchObject({ code: 500, reason: "Unknown" });
  });

  it("a redirect is a failure", async () => {
    const server = await serve((_, response) => answer(response, 300, "elsewhere"));
    expect(await failureOf(typesOf(connectCluster({ server })))).toMatchObject({ code: 300, message: "elsewhere" });
  });
});

describe("a watch ends", () => {
  it("when nobody answers within its time and a request's", async () => {
    const server = await serve(() => undefined);
    const cluster = connectCluster({ server, requestTimeoutMs: 50 });
    const error = await failureOf(typesOf(cluster, { timeoutSeconds: 0.05 }));
    expect(error).toMatchObject({ reason: "Timeout" });
    expect(error.message).toContain("within 100 ms");
  });

  it("without a word when it is aborted before it is answered", async () => {
    const abort = new AbortController();
    const server = await serve(() => abort.abort());
    let opened = 0;
    const watching = typesOf(connectCluster({ server }), { signal: abort.signal, onOpen: () => opened++ });
    expect(await watching).toEqual([]);
    expect(opened).toBe(0);
  });

  it("before the next event when it is aborted between two", async () => {
    const abort = new AbortController();
    const server = await serve((_, response) => response.end(`${ADDED}\n${ADDED}\n`));
    const types: string[] = [];
    for await (const { type } of connectCluster({ server }).watch(PODS, { ...FROM, signal: abort.signal })) {
      types.push(type);
      abort.abort();
    }
    expect(types).toEqual(["ADDED"]);
  });

  it("and no request is made when it is aborted already", async () => {
    let asked = 0;
    const server = await serve((_, response) => {
      asked++;
      response.end();
    });
    const onOpen = () => asked++;
    const token = async () => String(asked++);
    expect(await typesOf(connectCluster({ server, token }), { signal: AbortSignal.abort(), onOpen })).toEqual([]);
    expect(asked).toBe(0);
  });

  it("and no request is made when it is aborted while its token is had", async () => {
    let asked = 0;
    const server = await serve((_, response) => {
      asked++;
      response.end();
    });
    const abort = new AbortController();
    const token = async () => {
      abort.abort();
      return "token";
    };
    expect(await typesOf(connectCluster({ server, token }), { signal: abort.signal })).toEqual([]);
    expect(asked).toBe(0);
  });

  it("and leaves nothing behind at the signal", async () => {
    const { signal } = new AbortController();
    expect(await typesIn(`${ADDED}\n`, { signal })).toEqual(["ADDED"]);
    await vi.waitFor(() => expect(getEventListeners(signal, "abort")).toEqual([]), PATIENT);
  });
});
