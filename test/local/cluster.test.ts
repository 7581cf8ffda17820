/** What the embedded cluster offers beside its API: history, counts, kubeconfig, an end without leftovers. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { type Cluster, CONFIG_MAPS, PODS } from "../../shared/kube/port.ts";
import type { ConfigMap, TestPod } from "../contract/contract.ts";
import { sendRaw } from "../contract/raw.ts";

let local: LocalCluster;
let cluster: Cluster;

beforeAll(async () => {
  local = await startLocalCluster({ startDelayMs: 5, readyDelayMs: 5, terminationDelayMs: 5, nodes: 2 });
  cluster = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
    userAgent: "observer/1",
  });
});

afterAll(() => local.close());

const KEY = { namespace: "default", name: "a" };

it("every write is recorded with verb, object and resourceVersion", async () => {
  const created = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: KEY });
  await cluster.patch(CONFIG_MAPS, KEY, { type: "merge", body: { data: { k: "v" } } });
  await cluster.delete(CONFIG_MAPS, KEY);
  const writes = local.history().filter((write) => write.resource === "configmaps" && write.name === "a");
  expect(writes).toMatchObject([
    { verb: "create", userAgent: "observer/1", resourceVersion: created.metadata?.resourceVersion, isRemoved: false },
    { verb: "patch", object: { data: { k: "v" } }, previous: { metadata: { uid: created.metadata?.uid } } },
    { verb: "delete", isRemoved: true, object: { data: { k: "v" } } },
  ]);
  const versions = writes.map((write) => Number(write.resourceVersion));
  expect(versions).toEqual(versions.toSorted((left, right) => left - right));
});

it("a dry run and a write that changes nothing are not recorded", async () => {
  await cluster.create(CONFIG_MAPS, { metadata: KEY });
  const before = local.history().length;
  await cluster.patch(CONFIG_MAPS, KEY, { type: "merge", body: {} });
  await cluster.create(CONFIG_MAPS, { metadata: { ...KEY, name: "b" } }, { dryRun: true });
  expect(local.history().slice(before)).toEqual([]);
  await cluster.delete(CONFIG_MAPS, KEY);
});

it("calls are counted by verb and resource for each user agent", async () => {
  const other = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
    userAgent: "counter/1",
  });
  await other.list(PODS, {});
  await other.list(PODS, { namespace: "default" });
  await other.get(PODS, KEY).catch(() => undefined);
  expect(local.apiCalls("counter")).toEqual({ "LIST pods": 2, "GET pods": 1 });
  expect(local.apiCalls()["LIST pods"]).toBeGreaterThanOrEqual(2);
});

it("the history shows the restart of a container", async () => {
  const key = { namespace: "default", name: "p" };
  const spec = { containers: [{ name: "main", image: "a:1" }] };
  await cluster.create<TestPod>(PODS, { metadata: key, spec });
  const restarts = async () => {
    const pod = await cluster.get<TestPod>(PODS, key);
    const statuses = (pod.status?.["containerStatuses"] ?? []) as readonly { restartCount: number; ready: boolean }[];
    return statuses.map(({ restartCount, ready }) => [restartCount, ready]);
  };
  await expect.poll(restarts).toEqual([[0, true]]);
  const operations = [{ op: "replace", path: "/spec/containers/0/image", value: "a:2" }] as const;
  await cluster.patch(PODS, key, { type: "json", operations });
  await expect.poll(restarts).toEqual([[1, true]]);
  const byKubelet = local.history().filter((write) => write.name === "p" && write.userAgent === "kubelet");
  expect(byKubelet.every((write) => write.subresource === "status")).toBe(true);
  expect(byKubelet.length).toBeGreaterThanOrEqual(3);
});

it("the kubeconfig names server, authority and token", () => {
  const config = parse(local.kubeconfig());
  expect(config.clusters[0].cluster.server).toBe(local.url);
  const authority = Buffer.from(config.clusters[0].cluster["certificate-authority-data"], "base64").toString("utf8");
  expect(authority).toBe(local.caCertificate);
  expect(config.users[0].user.token).toBe(local.token);
});

it("a large answer is compressed for those who accept it", async () => {
  const data = { k: "x".repeat(200_000) };
  await cluster.create(CONFIG_MAPS, { metadata: { ...KEY, name: "large" }, data } as object);
  const path = "/api/v1/namespaces/default/configmaps/large";
  const plain = await sendRaw(local, { path });
  expect(plain.headers["content-encoding"]).toBeUndefined();
  const zipped = await sendRaw(local, { path, headers: { "accept-encoding": "gzip" } });
  expect(zipped.headers["content-encoding"]).toBe("gzip");
});

it("a closed cluster answers no more, and closing does not wait for watches", async () => {
  const other = await startLocalCluster();
  const client = connectCluster({
    server: other.url,
    certificateAuthority: other.caCertificate,
    token: async () => other.token,
  });
  const watching = (async () => {
    for await (const _event of client.watch(PODS, { resourceVersion: "0", timeoutSeconds: 60 }));
  })();
  await client.list(PODS, {});
  await other.close();
  await watching;
  await expect(client.list(PODS, {})).rejects.toThrow();
});
