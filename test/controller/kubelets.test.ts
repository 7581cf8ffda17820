/** Nodes are read where a native sidecar is about to be upgraded in place, and else nobody needs the right to. */
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

describe("kubelets are read", () => {
  it.each<[string, SidecarSet, readonly Pod[]]>([
    ["a native sidecar has another image", withNatives(NATIVE), [OLD]],
    ["that of one pod has, after others", withNatives(NATIVE), [podOf(), AS_WANTED, OLD]],
    [
      "one of two has, beside what is the pod's own",
      withNatives({ ...NATIVE, name: "log" }, NATIVE),
      [
        podOf([
          { name: "init", image: "init:1" },
          { name: "agent", image: "agent:1" },
        ]),
      ],
    ],
  ])("where %s", async (_what, set, pods) => {
    expect([...(await readKubelets(cluster, set, pods))]).toEqual(EVERY_NODE);
  });
});

describe("no kubelet is read", () => {
  const unlisted = (): Cluster => ({ ...cluster, list: () => Promise.reject(new Error("nodes were listed")) });

  it.each<[string, SidecarSet, readonly Pod[]]>([
    ["there are no pods", withNatives(NATIVE), []],
    ["pods have no init containers", withNatives(NATIVE), [podOf()]],
    ["all pods run what they should", withNatives(NATIVE), [AS_WANTED, AS_WANTED]],
    ["what differs is the pod's own", withNatives(NATIVE), [podOf([{ name: "init", image: "init:1" }])]],
    ["there are no native sidecars", sidecarSet("plain", 1, {}), [OLD]],
    ["the init container ends", withNatives({ name: "agent", image: "agent:2" }), [OLD]],
  ])("where %s", async (_what, set, pods) => {
    expect([...(await readKubelets(unlisted(), set, pods))]).toEqual([]);
  });
});

describe("the kubelets of all nodes", () => {
  it("are their versions, and of a node that has not said one nothing", async () => {
    const started = { metadata: { name: "started" }, status: { capacity: { cpu: "4" } } };
    for (const node of [{ metadata: { name: "silent" } }, started]) await cluster.create(NODES, node);
    expect([...(await listKubelets(cluster))]).toEqual([...EVERY_NODE, ["silent", ""], ["started", ""]]);
    for (const name of ["silent", "started"]) await cluster.delete(NODES, { name });
  });

  it("are listed by those who have the right: otherwise it is said which role is missing", async () => {
    const cause = new KubeError("nodes is forbidden", { code: 403, reason: "Forbidden" });
    const forbidden: Cluster = { ...cluster, list: () => Promise.reject(cause) };
    await expect(readKubelets(forbidden, withNatives(NATIVE), [OLD])).rejects.toEqual(
      new Error(
        "nodes may not be listed, which gate NativeSidecarInPlaceUpdate needs: apply infra/rbac/optional/native-sidecars.yaml",
        { cause },
      ),
    );
  });

  it("are not said to be forbidden where the API server is in trouble", async () => {
    const trouble = new KubeError("the server is starting", { code: 503, reason: "ServiceUnavailable" });
    await expect(listKubelets({ ...cluster, list: () => Promise.reject(trouble) })).rejects.toBe(trouble);
  });
});
