/** Loses the node in the middle of a rollout, or lets the node evict a pod. */
import { afterEach, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { PODS } from "../../../shared/kube/port.ts";
import { rebootNode, restartOnNode, silenceNode } from "../support/access.ts";
import { scenes } from "../support/open-scene.ts";
import { isReady, type Scene, setImage } from "../support/scene.ts";
import { eventually } from "../support/until.ts";
import { runInside } from "./inside.ts";

const openScene = scenes();
const COUNT = 6;
const GO_ON = { op: "replace", path: "/spec/updateStrategy/partition", value: 0 } as const;

let isSilent = false;
afterEach(async () => {
  if (isSilent) await backAgain();
});

async function backAgain(): Promise<void> {
  await restartOnNode("containerd");
  await restartOnNode("kubelet");
  isSilent = false;
}

/** Returns a rollout with two updated pods; the other pods wait. */
async function halfway(openSpec: object = {}): Promise<Scene> {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: COUNT - 2 } });
  await scene.deploy(COUNT, openSpec);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(2);
  return scene;
}

function restartsOf(pod: Pod, container: string): number | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === container)?.restartCount;
}

it("all pods of a lost node are patched, because they are down anyway, and restart when the node is back", async () => {
  const scene = await halfway();
  isSilent = true;
  await silenceNode();
  await scene.untilReady(0);
  const since = await scene.now();
  await scene.patchSet(GO_ON);
  await scene.untilToldThat(/6 of 6 pods updated, 0 of them ready/);
  await backAgain();
  for (const pod of await scene.untilUpdated(COUNT)) expect(restartsOf(pod, "main")).toBe(0);
  expect(await scene.record(since)).toMatchObject({ podPatches: COUNT - 2 });
});

it("when a node reboots, every container starts again, and the rollout ends", async () => {
  const scene = await halfway();
  await scene.patchSet(GO_ON);
  await scene.untilTouched(3);
  await rebootNode();
  for (const pod of await scene.untilUpdated(COUNT)) expect(restartsOf(pod, "main")).toBe(1);
  await scene.untilToldThat(/6 of 6 pods updated, 6 of them ready/);
});

it("a pod that the kubelet evicts does not count, and its successor has the new image", async () => {
  const volumes = [{ name: "small", emptyDir: { sizeLimit: "1Mi" } }];
  const containers = [{ name: "main", image: "nginx:1.29", volumeMounts: [{ name: "small", mountPath: "/small" }] }];
  const scene = await halfway({ volumes, containers });
  const updated = new Set((await scene.updated()).map(({ metadata }) => metadata?.uid));
  const old = (await scene.pods()).find(({ metadata }) => !updated.has(metadata?.uid));
  const name = old?.metadata?.name ?? "";
  await runInside(
    { namespace: scene.name, pod: name, container: "main" },
    "dd if=/dev/zero of=/small/file bs=1M count=4",
  );
  await eventually(
    () => scene.cluster.get<Pod>(PODS, { namespace: scene.name, name }),
    ({ status }) => expect(status).toMatchObject({ phase: "Failed", reason: "Evicted" }),
  );
  await scene.untilUpdated(3);
  const since = await scene.now();
  await scene.patchSet(GO_ON);
  // The containers of the evicted pod may count as restarted when the kubelet forgets them.
  for (const pod of await scene.untilUpdated(COUNT)) expect(restartsOf(pod, "main")).toBe(0);
  expect((await scene.record(since)).podPatches).toBe(COUNT - 3);
});

it("after an eviction through the API one pod fewer is updated, and the successor has the new image", async () => {
  const scene = await halfway();
  const since = await scene.now();
  await scene.patchSet(GO_ON);
  const updated = new Set((await scene.updated()).map(({ metadata }) => metadata?.uid));
  const old = (await scene.pods()).findLast(({ metadata }) => !updated.has(metadata?.uid));
  const metadata = { name: old?.metadata?.name ?? "", namespace: scene.name };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata } as KubernetesObject;
  await scene.cluster.create(PODS, eviction, { subresource: "eviction" });
  const pods = await scene.untilUpdated(COUNT);
  expect(pods.filter(isReady)).toHaveLength(COUNT);
  expect((await scene.record(since)).podPatches).toBeLessThan(COUNT - 1);
});
