/** Tests which fields of a pod a rollout changes besides an image, and which it does not. */
import { expect, it } from "vitest";
import type { ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import { scenes } from "./support/open-scene.ts";
import { APP, imageOf, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();

const AT_ONCE = { type: "RollingUpdate", maxUnavailable: "100%" };

interface WithInitStatuses {
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

function initContainersOf({ status }: Pod) {
  const statuses = (status as WithInitStatuses | undefined)?.initContainerStatuses ?? [];
  return statuses.map(({ name, image, restartCount, containerID }) => ({ name, image, restartCount, containerID }));
}

async function annotationsOf(scene: Scene, key: string) {
  return (await scene.pods()).map(({ metadata }) => metadata?.annotations?.[key]);
}

it("a rollout leaves init containers and native sidecars unchanged", async () => {
  const scene = await openScene({
    initContainers: [{ name: "prepare", image: "prepare:v1" }],
    updateStrategy: AT_ONCE,
  });
  const native = `${scene.name}-native`;
  await scene.createSet(native, {
    containers: [],
    initContainers: [{ name: "proxy", image: "proxy:v1", restartPolicy: "Always" }],
    updateStrategy: { type: "NotUpdate" },
  });
  await scene.deploy(2);
  const before = (await scene.pods()).map(initContainersOf);
  expect(before.flat().map(({ name }) => name)).toEqual(["prepare", "proxy", "prepare", "proxy"]);
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  expect((await scene.untilUpdated(2)).map(initContainersOf)).toEqual(before);
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 2 });

  // An init container's image concerns only new pods. The other pods still count as updated.
  await scene.patchSet({ op: "replace", path: "/spec/initContainers/0/image", value: "prepare:v2" });
  expect((await scene.untilSettled()).why).toBe("2 of 2 pods updated, 2 of them ready");
  await scene.patchOther(native, { op: "replace", path: "/spec/initContainers/0/image", value: "proxy:v2" });
  expect((await scene.untilSettled(native)).why).toMatch(/^the update strategy is NotUpdate; 0 of 2 pods updated/);
  expect((await scene.pods()).map(initContainersOf)).toEqual(before);
  expect((await scene.record(since)).podPatches).toBe(2);
  const created = await scene.createPod("new");
  expect(created.spec.initContainers?.map(({ image }) => image)).toEqual(["prepare:v2", "proxy:v2"]);
});

it("annotations are written together with a new image, each with its policy, and not without a new image", async () => {
  const patch = (patchPolicy: string, value: string) => {
    return { patchPolicy, annotations: { [`example.com/${patchPolicy.toLowerCase()}`]: value } };
  };
  const policies = (version: string) => [
    patch("Retain", version),
    patch("Overwrite", version),
    patch("MergePatchJson", `{"${version}":true,"kept":null}`),
  ];
  const scene = await openScene({ patchPodMetadata: policies("v1"), updateStrategy: AT_ONCE });
  await scene.createPod("one", {}, { annotations: { "example.com/mergepatchjson": `{"own":1,"kept":2}` } });
  await scene.untilReady(1);
  const all = async () =>
    Promise.all(["retain", "overwrite", "mergepatchjson"].map((key) => annotationsOf(scene, `example.com/${key}`)));
  expect(await all()).toEqual([["v1"], ["v1"], [`{"own":1,"v1":true}`]]);

  const since = await scene.now();
  await scene.patchSet({ op: "replace", path: "/spec/patchPodMetadata", value: policies("v2") });
  await scene.untilSettled();
  expect((await scene.record(since)).podPatches).toBe(0);
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(1);
  expect(await all()).toEqual([["v1"], ["v2"], [`{"own":1,"v1":true,"v2":true}`]]);
  expect((await scene.record(since)).podPatches).toBe(1);
});

it("a pod whose annotation cannot be merged is reported and delays no other pod", async () => {
  const scene = await openScene({
    patchPodMetadata: [{ patchPolicy: "MergePatchJson", annotations: { "example.com/mesh": "{}" } }],
    updateStrategy: AT_ONCE,
  });
  await scene.createPod("one");
  await scene.createPod("two");
  await scene.untilReady(2);
  const body = { metadata: { annotations: { "example.com/mesh": "no JSON" } } };
  await scene.patchPod("one", body);
  await scene.patchSet(setImage("agent:v2"));
  expect((await scene.untilUpdated(1)).map(({ metadata }) => metadata?.name)).toEqual(["two"]);
  const { why } = await scene.untilToldThat(/1 of 2 pods updated, 1 of them ready/);
  expect(why).toMatch(/; left alone: scene-\w+\/one \(.*example\.com\/mesh/);
});

const HALF = {
  targetContainersMode: "sum",
  targetContainersNameRegex: ".*",
  resourcesExpr: { requests: { cpu: "cpu * 50%" } },
};

it("a pod keeps the resources of its creation, and a new resources policy applies only to new pods", async () => {
  const scene = await openScene({ containers: [{ ...SIDECAR, resourcesPolicy: HALF }], updateStrategy: AT_ONCE });
  const containers = [{ ...APP, resources: { requests: { cpu: "1" } } }];
  await scene.deploy(2, { containers });
  const requested = async () =>
    (await scene.pods()).map(({ spec }) => {
      return spec.containers.find(({ name }) => name === "agent")?.resources?.requests?.["cpu"];
    });
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(2);
  expect(await requested()).toEqual(["500m", "500m"]);

  const path = "/spec/containers/0/resourcesPolicy/resourcesExpr/requests/cpu";
  await scene.patchSet({ op: "replace", path, value: "cpu * 25%" });
  const { why } = await scene.untilToldThat(/cannot be upgraded/);
  expect(why).toMatch(
    /; 2 cannot be upgraded in place, since more than images changed: spec\.containers\{agent\}\.resourcesPolicy$/,
  );
  await scene.createPod("new", { containers });
  await eventually(requested, (all) => expect(all.toSorted()).toEqual(["250m", "500m", "500m"]));
  expect((await scene.pods()).map((pod) => imageOf(pod, "agent"))).toEqual(Array(3).fill("agent:v2"));
});
