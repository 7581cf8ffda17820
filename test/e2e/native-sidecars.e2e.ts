/** Tests that native sidecars get new images in place, if the feature gate is on and their nodes support it. */
import { expect, it, onTestFinished } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { NODES } from "../../shared/kube/port.ts";
import { isOnNode } from "./support/access.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import type { Scene } from "./support/scene.ts";

const openScene = scenes({ gates: ["NativeSidecarInPlaceUpdate"] });

const PROXY = { name: "proxy", image: "proxy:v1", restartPolicy: "Always" };
const NATIVE = { initContainers: [{ name: "prepare", image: "prepare:completes" }, PROXY] };
const NEXT_IMAGE = { op: "replace", path: "/spec/initContainers/1/image", value: "proxy:v2" } as const;

function proxyOf({ status }: Pod) {
  return status?.initContainerStatuses?.find(({ name }) => name === "proxy");
}

function setVersion(scene: Scene, node: string, kubeletVersion: string): Promise<unknown> {
  const body = { status: { nodeInfo: { kubeletVersion } } };
  return scene.cluster.patch(NODES, { name: node }, { type: "merge", body }, { subresource: "status" });
}

it("native sidecars are updated within maxUnavailable, and neither the app nor an init container is restarted", async () => {
  const scene = await openScene({ ...NATIVE, updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
  await scene.deploy(6);
  await scene.untilSettled();
  const since = await scene.now();
  const beganMs = performance.now();
  await scene.patchSet(NEXT_IMAGE);
  const pods = await scene.untilUpdated(6);
  addFigure("6 native sidecars are upgraded, 2 at once, in ms", Math.round(performance.now() - beganMs));
  expect((await scene.untilSettled()).why).toMatch(/6 of 6/);
  expect(pods.map((pod) => proxyOf(pod)).map((status) => [status?.image, status?.restartCount])).toEqual(
    Array(6).fill(["docker.io/library/proxy:v2", 1]),
  );
  const inits = pods.map(({ status }) => status?.initContainerStatuses?.find(({ name }) => name === "prepare"));
  expect(inits.map((status) => status?.restartCount)).toEqual(Array(6).fill(0));
  const { maxUnavailableObserved, ...record } = await scene.record(since);
  // A real kubelet finishes the restart before it updates the pod's conditions.
  if (!isOnNode()) expect(maxUnavailableObserved).toBeGreaterThan(0);
  expect(maxUnavailableObserved).toBeLessThanOrEqual(2);
  expect(record).toMatchObject({ appContainerRestarts: 0, podPatches: 6 });
  addFigure("native sidecars upgraded in place", pods.length);
});

it("an image that cannot be pulled stops the rollout at maxUnavailable", async () => {
  const scene = await openScene({ ...NATIVE, updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
  await scene.deploy(5);
  await scene.untilSettled();
  await scene.patchSet({ ...NEXT_IMAGE, value: "proxy:does-not-exist" });
  await scene.untilTouched(2);
  await scene.untilToldThat(/proxy/);
  expect(await scene.updated()).toHaveLength(2);
});

it("pods whose kubelet is too old stay as they are, and the report names the node", async () => {
  const scene = await openScene({ ...NATIVE, updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  const before = await scene.deploy(6);
  await scene.untilSettled();
  const node = before[0]?.spec.nodeName ?? "";
  const old = before.filter(({ spec }) => spec.nodeName === node).length;
  const { kubeletVersion = "" } = await nodeInfo(scene, node);
  onTestFinished(async () => void (await setVersion(scene, node, kubeletVersion)));
  await setVersion(scene, node, "v1.30.9");
  await scene.patchSet(NEXT_IMAGE);
  if (old < before.length) await scene.untilUpdated(before.length - old);
  const report = await scene.untilToldThat(/left alone/);
  expect(report.why).toContain(`node ${node} has kubelet v1.30.9, which restarts native sidecars only from v1.31 on`);
  expect((await scene.pods()).filter((pod) => proxyOf(pod)?.image === "docker.io/library/proxy:v1")).toHaveLength(old);
});

interface Node {
  readonly status?: { readonly nodeInfo?: { readonly kubeletVersion?: string } };
}

async function nodeInfo(scene: Scene, name: string) {
  return ((await scene.cluster.get(NODES, { name })) as Node).status?.nodeInfo ?? {};
}
