/** How a new version of a SidecarSet reaches the pods that run, on a real control plane. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../shared/api/names.ts";
import { CONTROLLER_REVISIONS, EVENTS, PODS } from "../../shared/kube/port.ts";
import { controlPlane } from "./support/access.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { imageOf, isReady, Scene, SIDECAR, setImage } from "./support/scene.ts";

let functions: Functions;
let scene: Scene;
beforeAll(async () => {
  functions = await startFunctions(controlPlane());
});
afterAll(() => functions?.close());
beforeEach(() => {
  scene = new Scene(functions);
});
afterEach(() => scene.close());

const FOUR_BY_ONE = { type: "RollingUpdate", maxUnavailable: 1 };

async function images(): Promise<readonly (string | undefined)[]> {
  return (await scene.pods()).map((pod) => imageOf(pod, "agent")).toSorted();
}

it("an image that nobody can pull stops at maxUnavailable, and a good one goes on", async () => {
  await scene.open({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
  await scene.deploy(6);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:does-not-exist"));
  await expect.poll(async () => (await scene.updated()).length, { timeout: 20_000 }).toBe(2);
  await expect.poll(async () => (await scene.report())?.why, { timeout: 20_000 }).toMatch(/2 unavailable of at most 2/);
  expect((await scene.pods()).filter(isReady)).toHaveLength(4);
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: 2, podPatches: 2 });
  // Pods that are down already use none of the budget, as in OpenKruise: they are mended beside two others.
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(6);
  expect(await scene.record(since)).toMatchObject({
    maxUnavailableObserved: 4,
    appContainerRestarts: 0,
    podPatches: 8,
  });
});

it("nothing is updated while it is paused", async () => {
  await scene.open({ updateStrategy: { type: "RollingUpdate", paused: true, maxUnavailable: "100%" } });
  await scene.deploy(3);
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  expect((await scene.untilSettled()).why).toMatch(/^paused; 0 of 3/);
  expect((await scene.record(since)).podPatches).toBe(0);
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/paused", value: false });
  await scene.untilUpdated(3);
});

it("only the selected pods are updated, then all", async () => {
  const selector = { matchLabels: { ring: "canary" } };
  await scene.open({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%", selector } });
  const [first] = await scene.deploy(3);
  const key = { namespace: scene.name, name: first?.metadata?.name ?? "" };
  await scene.cluster.patch(PODS, key, { type: "merge", body: { metadata: { labels: { ring: "canary" } } } });
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(1);
  await scene.untilSettled();
  expect(await images()).toEqual(["agent:v1", "agent:v1", "agent:v2"]);
  await scene.patchSet({ op: "remove", path: "/spec/updateStrategy/selector" });
  await scene.untilUpdated(3);
});

it("where more than the image changed no pod is updated, and each says so", async () => {
  await scene.open({ updateStrategy: FOUR_BY_ONE });
  await scene.deploy(4);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"), {
    op: "add",
    path: "/spec/containers/0/env",
    value: [{ name: "A", value: "b" }],
  });
  expect((await scene.untilSettled()).why).toMatch(/4 cannot be upgraded in place/);
  for (const pod of await scene.pods()) {
    const condition = pod.status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION);
    expect(condition).toMatchObject({
      status: "False",
      reason: "UpdateImmutableField",
      message: `{"${scene.name}":false}`,
    });
  }
  expect(await images()).toEqual(Array(4).fill("agent:v1"));
  const { items } = await scene.cluster.list(EVENTS, { fieldSelector: `involvedObject.name=${scene.name}` });
  expect(items).toMatchObject([{ reason: "NotUpgradablePods", type: "Normal" }]);
});

it("every version is kept as a ControllerRevision, owned by the SidecarSet, and goes with it", async () => {
  await scene.open({ customVersion: "1", updateStrategy: FOUR_BY_ONE });
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"), { op: "replace", path: "/spec/customVersion", value: "2" });
  await scene.untilSettled();
  const revisions = async () =>
    (
      await scene.cluster.list<ControllerRevision>(CONTROLLER_REVISIONS, {
        labelSelector: `kruise.io/sidecarset-name=${scene.name}`,
      })
    ).items;
  expect(await revisions()).toHaveLength(2);
  expect((await revisions()).toSorted((a, b) => a.revision - b.revision)).toMatchObject([
    { revision: 1, data: { spec: { containers: [{ image: "agent:v1" }] } } },
    { revision: 2, data: { spec: { containers: [{ image: "agent:v2" }] } } },
  ]);
  await scene.deleteSet(scene.name);
  await expect.poll(revisions, { timeout: 20_000 }).toEqual([]);
  await scene.createSet(scene.name, {});
});

it("new pods get the revision that the injection strategy names", async () => {
  await scene.open({ customVersion: "stable", updateStrategy: { type: "NotUpdate" } });
  await scene.untilSettled();
  await scene.patchSet(
    setImage("agent:v2"),
    { op: "replace", path: "/spec/customVersion", value: "next" },
    { op: "add", path: "/spec/injectionStrategy", value: { revision: { customVersion: "stable", policy: "Always" } } },
  );
  await scene.untilSettled();
  expect(imageOf(await scene.createPod("one"), "agent")).toBe("agent:v1");
});

it("a canary takes the place of its base in the pods that it selects", async () => {
  await scene.open();
  const canary = `${scene.name}-canary`;
  const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": scene.name };
  const spec = {
    selector: { matchLabels: { ring: "canary" } },
    containers: [{ ...SIDECAR, image: "agent:v2" }],
    updateStrategy: { type: "NotUpdate" },
  };
  await scene.createSet(canary, spec, { annotations });
  const one = await scene.createPod("one", {}, { ring: "canary" });
  const two = await scene.createPod("two");
  await scene.deleteSet(canary);
  expect([imageOf(one, "agent"), imageOf(two, "agent")]).toEqual(["agent:v2", "agent:v1"]);
});

const HOT = { ...SIDECAR, upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" } };

it("a hot upgrade starts the new container beside the old one, then empties that", async () => {
  await scene.open({ containers: [HOT], updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  await scene.deploy(2);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  const slots = async () => (await scene.pods()).map((pod) => `${imageOf(pod, "agent-1")} ${imageOf(pod, "agent-2")}`);
  await expect.poll(slots, { timeout: 30_000 }).toEqual(Array(2).fill("empty:v1 agent:v2"));
  await scene.untilUpdated(2);
});

it("a hot upgrade to an image that nobody can pull leaves the old container as it is", async () => {
  await scene.open({ containers: [HOT], updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  await scene.deploy(2);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:does-not-exist"));
  await expect.poll(async () => (await scene.updated()).length, { timeout: 20_000 }).toBe(1);
  await expect.poll(async () => (await scene.report())?.why, { timeout: 20_000 }).toMatch(/1 unavailable of at most 1/);
  expect((await scene.pods()).map((pod) => imageOf(pod, "agent-1"))).toEqual(["agent:v1", "agent:v1"]);
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: 1, podPatches: 1 });
});

it("pods that are deleted and made anew in the middle are no obstacle", async () => {
  await scene.open({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
  await scene.deploy(8);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await expect.poll(async () => (await scene.updated()).length, { timeout: 20_000 }).toBeGreaterThan(0);
  for (const { metadata } of (await scene.pods()).slice(0, 3))
    await scene.cluster.delete(PODS, { namespace: scene.name, name: metadata?.name ?? "" });
  await scene.untilUpdated(8);
});

it("deleting the SidecarSet in the middle stops the rollout and leaves the pods as they are", async () => {
  await scene.open({ updateStrategy: FOUR_BY_ONE });
  await scene.deploy(6);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await expect.poll(async () => (await images()).includes("agent:v2"), { timeout: 20_000 }).toBe(true);
  await scene.deleteSet(scene.name);
  await scene.untilReady(6);
  expect(await images()).toContain("agent:v1");
  await scene.createSet(scene.name, { selector: { matchLabels: { scene: "none" } } });
  await scene.untilSettled();
  expect(await images()).toContain("agent:v1");
});
