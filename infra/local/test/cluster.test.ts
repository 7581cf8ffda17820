/** Functions of the local cluster besides its API: history, counts, kubeconfig and close. */
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { type LocalCluster, startLocalCluster } from "../cluster.ts";
import { type Call, call, open } from "./call.ts";

let local: LocalCluster;

beforeAll(async () => {
  local = await startLocalCluster({ startDelayMs: 5, readyDelayMs: 5, terminationDelayMs: 5, nodes: 2 });
});

afterAll(() => local.close());

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const PODS = "/api/v1/namespaces/default/pods";
const MERGE = { "content-type": "application/merge-patch+json" };

/** The returned object. Throws on an error of the API. */
async function send(path: string, options?: Call) {
  const answer = await call(local, path, { ...options, headers: { "user-agent": "observer/1", ...options?.headers } });
  expect(answer.code, answer.text).toBeLessThan(300);
  return JSON.parse(answer.text);
}

const create = (path: string, body: unknown) => send(path, { method: "POST", body });
const configMap = (name: string, data?: object) => ({ metadata: { name }, data });

it("the history records every write with its verb, object and resourceVersion", async () => {
  const created = await create(CONFIG_MAPS, configMap("a"));
  await send(`${CONFIG_MAPS}/a`, { method: "PATCH", body: { data: { k: "v" } }, headers: MERGE });
  await send(`${CONFIG_MAPS}/a`, { method: "DELETE" });
  const writes = local.history().filter((write) => write.resource === "configmaps" && write.name === "a");
  expect(writes).toMatchObject([
    { verb: "create", userAgent: "observer/1", resourceVersion: created.metadata.resourceVersion, isRemoved: false },
    { verb: "patch", object: { data: { k: "v" } }, previous: { metadata: { uid: created.metadata.uid } } },
    { verb: "delete", isRemoved: true, object: { data: { k: "v" } } },
  ]);
  const versions = writes.map((write) => Number(write.resourceVersion));
  expect(versions).toEqual(versions.toSorted((left, right) => left - right));
});

it("the history records no dry run and no write without changes", async () => {
  await create(CONFIG_MAPS, configMap("a"));
  const before = local.history().length;
  await send(`${CONFIG_MAPS}/a`, { method: "PATCH", body: {}, headers: MERGE });
  await create(`${CONFIG_MAPS}?dryRun=All`, configMap("b"));
  expect(local.history().slice(before)).toEqual([]);
  await send(`${CONFIG_MAPS}/a`, { method: "DELETE" });
});

it("apiCalls counts calls by verb and resource for each user agent", async () => {
  const headers = { "user-agent": "counter/1" };
  await call(local, "/api/v1/pods", { headers });
  await call(local, PODS, { headers });
  await call(local, `${PODS}/a`, { headers });
  expect(local.apiCalls("counter")).toEqual({ "LIST pods": 2, "GET pods": 1 });
  expect(local.apiCalls()["LIST pods"]).toBeGreaterThanOrEqual(2);
});

it("the history shows the restart of a container", async () => {
  await create(PODS, { metadata: { name: "p" }, spec: { containers: [{ name: "main", image: "a:1" }] } });
  const restarts = async () => {
    const { status } = await send(`${PODS}/p`);
    const statuses: readonly { restartCount: number; ready: boolean }[] = status?.containerStatuses ?? [];
    return statuses.map(({ restartCount, ready }) => [restartCount, ready]);
  };
  await expect.poll(restarts).toEqual([[0, true]]);
  const operations = [{ op: "replace", path: "/spec/containers/0/image", value: "a:2" }];
  const headers = { "content-type": "application/json-patch+json" };
  await send(`${PODS}/p`, { method: "PATCH", body: operations, headers });
  await expect.poll(restarts).toEqual([[1, true]]);
  const byKubelet = local.history().filter((write) => write.name === "p" && write.userAgent === "kubelet");
  expect(byKubelet.every((write) => write.subresource === "status")).toBe(true);
  expect(byKubelet.length).toBeGreaterThanOrEqual(3);
});

it("the kubeconfig has the server, the certificate authority and the token", () => {
  const config = parse(local.kubeconfig());
  expect(config.clusters[0].cluster.server).toBe(local.url);
  const authority = Buffer.from(config.clusters[0].cluster["certificate-authority-data"], "base64").toString("utf8");
  expect(authority).toBe(local.caCertificate);
  expect(config.users[0].user.token).toBe(local.token);
});

it("the local cluster compresses a large answer for a client that accepts gzip", async () => {
  await create(CONFIG_MAPS, configMap("large", { k: "x".repeat(200_000) }));
  const plain = await call(local, `${CONFIG_MAPS}/large`);
  expect(plain.headers["content-encoding"]).toBeUndefined();
  const zipped = await call(local, `${CONFIG_MAPS}/large`, { headers: { "accept-encoding": "gzip" } });
  expect(zipped.headers["content-encoding"]).toBe("gzip");
  expect(zipped.text.length).toBeLessThan(plain.text.length / 10);
});

it("a closed cluster answers no calls, and close does not wait for watches", async () => {
  const other = await startLocalCluster();
  const watch = await open(other, "/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=60");
  expect(watch.statusCode).toBe(200);
  const watching = text(watch).catch(() => "cut");
  expect((await call(other, "/api/v1/pods")).code).toBe(200);
  await other.close();
  await watching;
  await expect(call(other, "/api/v1/pods")).rejects.toThrow("ECONNREFUSED");
});
