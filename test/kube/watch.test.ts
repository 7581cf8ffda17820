/** Tests edge cases of a watch: its request, odd lines and its end. */
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

/**
 * Milliseconds between two writes: normally the first is read before the second. On a busy machine both arrive
 * together.
 */
const APART_MS = 30;

describe("the request of a watch:", () => {
  it("a watch sends its namespace and selectors, and calls onOpen once", async () => {
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

  it("onRequest receives the outcome of every watch", async () => {
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

describe("lines of a watch:", () => {
  it("empty lines of a watch are skipped", async () => {
    expect(await typesIn(`\n${ADDED}\n \n\n${ADDED}\n`)).toEqual(["ADDED", "ADDED"]);
  });

  it("an event that arrives in two pieces is one event", async () => {
    const server = await serve((_, response) => {
      response.write(ADDED.slice(0, 9));
      setTimeout(() => response.end(`${ADDED.slice(9)}\n`), APART_MS);
    });
    expect(await typesOf(connectCluster({ server }))).toEqual(["ADDED"]);
  });

  it("a watch fails at a line that is not JSON", async () => {
    const error = await failureOf(typesIn(`${ADDED}\n{"type"\n`));
    expect(error).toMatchObject({ code: 200, reason: "UnreadableAnswer", cause: expect.any(SyntaxError) });
    expect(error.message).toContain("has a watch event that is not JSON");
  });

  it("an ERROR event without a code fails the watch with code 500", async () => {
    expect(await failureOf(typesIn('{"type":"ERROR","object":{}}\n'))).toMatchObject({ code: 500, reason: "Unknown" });
  });

  it.each(["null", "5", "[]", '{"type":5,"object":{}}', '{"type":"ADDED"}', '{"type":"ADDED","object":null}'])(
    "a watch fails at the event %s, which has no type or no object",
    async (line) => {
      const error = await failureOf(typesIn(`${line}\n`));
      expect(error).toMatchObject({ reason: "UnreadableAnswer" });
      expect(error.message).toContain("has a watch event without a type and an object");
    },
  );

  it.each(["5", "null", '{"message":5,"code":"x","reason":{},"details":7}'])(
    "an ERROR event with the object %s fails the watch with code 500",
    async (object) => {
      const error = await failureOf(typesIn(`{"type":"ERROR","object":${object}}\n`));
      expect(error).toMatchObject({ code: 500, reason: "Unknown", message: "the API server answered 500" });
    },
  );

  it("a watch ends at a line that has no end", async () => {
    const piece = "x".repeat(1_048_576);
    const server = await serve((_, response) => {
      const send = () => {
        while (!response.destroyed && response.write(piece));
        if (!response.destroyed) response.once("drain", send);
      };
      send();
    });
    expect(await typesOf(connectCluster({ server }))).toEqual([]);
  });

  it("a watch fails when the server redirects it", async () => {
    const server = await serve((_, response) => answer(response, 300, "elsewhere"));
    expect(await failureOf(typesOf(connectCluster({ server })))).toMatchObject({ code: 300, message: "elsewhere" });
  });
});

describe("the end of a watch:", () => {
  it("a watch fails with a timeout when no answer comes within its time plus the request's time", async () => {
    const server = await serve(() => undefined);
    const cluster = connectCluster({ server, requestTimeoutMs: 50 });
    const error = await failureOf(typesOf(cluster, { timeoutSeconds: 0.05 }));
    expect(error).toMatchObject({ reason: "Timeout" });
    expect(error.message).toContain("within 100 ms");
  });

  it("a watch that is aborted before its answer ends without an error and without onOpen", async () => {
    const abort = new AbortController();
    const server = await serve(() => abort.abort());
    let opened = 0;
    const watching = typesOf(connectCluster({ server }), { signal: abort.signal, onOpen: () => opened++ });
    expect(await watching).toEqual([]);
    expect(opened).toBe(0);
  });

  it("a watch that is aborted between two events does not yield the second event", async () => {
    const abort = new AbortController();
    const server = await serve((_, response) => response.end(`${ADDED}\n${ADDED}\n`));
    const types: string[] = [];
    for await (const { type } of connectCluster({ server }).watch(PODS, { ...FROM, signal: abort.signal })) {
      types.push(type);
      abort.abort();
    }
    expect(types).toEqual(["ADDED"]);
  });

  it("a watch whose signal is already aborted sends no request", async () => {
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

  it("a watch that is aborted while its token is read sends no request", async () => {
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

  it("a watch removes its listener from the abort signal", async () => {
    const { signal } = new AbortController();
    expect(await typesIn(`${ADDED}\n`, { signal })).toEqual(["ADDED"]);
    await vi.waitFor(() => expect(getEventListeners(signal, "abort")).toEqual([]), PATIENT);
  });
});
