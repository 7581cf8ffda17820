/**
 * Tests that a pass reads nodes only before it upgrades a native sidecar in place. Other passes need no right to read
 * nodes.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../shared/api/sidecarset.ts";
import { listKubelets, readKubelets } from "../../shared/controller/rollout/kubelets.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, NODES } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
});
afterAll(() => local?.close());

const EVERY_NODE = ["node-1", "node-2", "node-3"].map((name) => [name, "v1.32.0"] as const);
const NATIVE: SidecarContainer = { name: "agent", image: "agent:2", restartPolicy: "Always" };

function withNatives(...initContainers: readonly SidecarContainer[]): SidecarSet {
  const { spec, ...rest } = sidecarSet("native", 1, {});
  return { ...rest, spec: { ...spec, initContainers } };
}

function podOf(initContainers?: readonly Container[]): Pod {
  const containers = [{ name: "main", image: "main:1" }];
  return newPod({ name: "web", namespace: "shop" }, { containers, ...(initContainers ? { initContainers } : {}) });
}

const AS_WANTED = podOf([{ name: "agent", image: "agent:2" }]);
const OLD = podOf([{ name: "agent", image: "agent:1" }]);

it.each<[string, SidecarSet, readonly Pod[]]>([
  ["a native sidecar has another image", withNatives(NATIVE), [OLD]],
  ["only the native sidecar of the last pod has another image", withNatives(NATIVE), [podOf(), AS_WANTED, OLD]],
  [
    "only one of two native sidecars has another image",
    withNatives({ ...NATIVE, name: "log" }, NATIVE),
    [
      podOf([
        { name: "init", image: "init:1" },
        { name: "agent", image: "agent:1" },
      ]),
    ],
  ],
])("readKubelets lists the nodes when %s", async (_what, set, pods) => {
  expect([...(await readKubelets(cluster, set, pods))]).toEqual(EVERY_NODE);
});

describe("readKubelets without a list of nodes:", () => {
  const unlisted = (): Cluster => ({ ...cluster, list: () => Promise.reject(new Error("nodes were listed")) });

  it.each<[string, SidecarSet, readonly Pod[]]>([
    ["there are no pods", withNatives(NATIVE), []],
    ["pods have no init containers", withNatives(NATIVE), [podOf()]],
    ["all pods run the right images", withNatives(NATIVE), [AS_WANTED, AS_WANTED]],
    ["only the pod's own init container differs", withNatives(NATIVE), [podOf([{ name: "init", image: "init:1" }])]],
    ["there are no native sidecars", sidecarSet("plain", 1, {}), [OLD]],
    ["the init container is not a native sidecar", withNatives({ name: "agent", image: "agent:2" }), [OLD]],
  ])("readKubelets does not list the nodes when %s", async (_what, set, pods) => {
    expect([...(await readKubelets(unlisted(), set, pods))]).toEqual([]);
  });
});

it("listKubelets returns the kubelet version of each node, and an empty one if the node reports none", async () => {
  const started = { metadata: { name: "started" }, status: { capacity: { cpu: "4" } } };
  for (const node of [{ metadata: { name: "silent" } }, started]) await cluster.create(NODES, node);
  expect([...(await listKubelets(cluster))]).toEqual([...EVERY_NODE, ["silent", ""], ["started", ""]]);
  for (const name of ["silent", "started"]) await cluster.delete(NODES, { name });
});

it("the error names the missing role when listing nodes is forbidden", async () => {
  const cause = new KubeError("nodes is forbidden", { code: 403, reason: "Forbidden" });
  const forbidden: Cluster = { ...cluster, list: () => Promise.reject(cause) };
  await expect(readKubelets(forbidden, withNatives(NATIVE), [OLD])).rejects.toEqual(
    new Error(
      "nodes may not be listed, which gate NativeSidecarInPlaceUpdate needs: apply infra/rbac/optional/native-sidecars.yaml",
      { cause },
    ),
  );
});

it("an error of the API server while listing nodes is passed on unchanged", async () => {
  const trouble = new KubeError("the server is starting", { code: 503, reason: "ServiceUnavailable" });
  await expect(listKubelets({ ...cluster, list: () => Promise.reject(trouble) })).rejects.toBe(trouble);
});
