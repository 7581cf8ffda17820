/**
 * Tests changes of sidecars' cpu and memory in place, on the embedded cluster: their order, the budget and the calls.
 */

import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod, ResourceRequirements } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  eventually,
  fastClock,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  readPods,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";
import { mostUnavailable } from "./history.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const SMALL = { requests: { cpu: "100m", memory: "64Mi" }, limits: { memory: "64Mi" } };
const LARGE = { requests: { cpu: "200m", memory: "128Mi" }, limits: { memory: "128Mi" } };
const PODS_OF_EACH = 4;

const options = (more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 120_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: { ...DEFAULT_ROLLOUT_SETTINGS, InPlaceResize: true },
  follow: true,
  clock: fastClock(20),
  ...more,
});

const proxy = (image: string, resources: ResourceRequirements) => ({ name: "proxy", image, resources });

/**
 * Creates a SidecarSet as users and webhooks do: the pods of its first version are ready, and a pass has recorded this.
 */
async function deploy(name: string, resources: ResourceRequirements): Promise<void> {
  const set = sidecarSet(name, 1, { maxUnavailable: 2 });
  const containers = [proxy("registry.example/proxy:1", resources)];
  await cluster.create<SidecarSet>(SIDECARSETS, { ...set, spec: { ...set.spec, containers } });
  for (let index = 0; index < PODS_OF_EACH; index++) {
    const pod = injectedPod(name, `${name}-${index}`);
    const all = pod.spec.containers.map((one) => (one.name === "proxy" ? { ...one, resources } : one));
    await cluster.create<Pod>(PODS, { ...pod, spec: { ...pod.spec, containers: all } });
  }
  await eventually(async () => expect((await readPods(cluster, name)).every(isReady)).toBe(true));
  await runPass(cluster, options({ sidecarSet: name }));
}

async function release(name: string, image: string, resources: ResourceRequirements): Promise<void> {
  const annotations = { [HASH_ANNOTATION]: "hash2", [HASH_WITHOUT_IMAGE_ANNOTATION]: "other" };
  const body = { metadata: { annotations }, spec: { containers: [proxy(image, resources)] } };
  await cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
}

const memoryOf = ({ spec }: Pod) => spec.containers[1]?.resources?.requests?.["memory"];

/** Returns each written pair of image and memory once, in the order of the writes. */
function shapesOf(name: string, since: number): readonly string[] {
  const shapes = test
    .history()
    .slice(since)
    .filter(({ userAgent }) => userAgent !== "kubelet")
    .filter(({ resource, name: written }) => resource === "pods" && written.startsWith(`${name}-`))
    .map(({ object }) => object as unknown as Pod)
    .map((pod) => `${pod.spec.containers[1]?.image?.split(":")[1]} ${memoryOf(pod)}`);
  return [...new Set(shapes)];
}

function resizesOf(name: string, since: number) {
  const resizes = test
    .history()
    .slice(since)
    .filter(({ subresource }) => subresource === "resize");
  return resizes.filter(({ name: written }) => written.startsWith(`${name}-`));
}

it.each<[string, ResourceRequirements, ResourceRequirements, readonly string[]]>([
  ["more memory before their new image", SMALL, LARGE, ["1 64Mi", "1 128Mi", "2 128Mi"]],
  ["less memory after their new image", LARGE, SMALL, ["2 128Mi", "2 64Mi"]],
])("a pass gives sidecars %s", async (sentence, before, after, shapes) => {
  const name = sentence.slice(0, 4);
  await deploy(name, before);
  const since = test.history().length;
  await release(name, "registry.example/proxy:2", after);
  const { sidecarSets, problems } = await runPass(cluster, options({ sidecarSet: name }));
  expect(problems).toEqual([]);
  expect(sidecarSets).toMatchObject([{ stop: "settled", why: "4 of 4 pods updated, 4 of them ready" }]);
  const pods = await readPods(cluster, name);
  expect(pods.map((pod) => pod.status?.containerStatuses?.[1]?.resources)).toEqual(Array(PODS_OF_EACH).fill(after));
  expect(pods.map((pod) => pod.status?.containerStatuses?.[1]?.restartCount)).toEqual(Array(PODS_OF_EACH).fill(1));
  expect(pods.map((pod) => pod.status?.containerStatuses?.[0]?.restartCount)).toEqual(Array(PODS_OF_EACH).fill(0));
  expect(shapesOf(name, since)).toEqual(shapes);
  expect(mostUnavailable(test.history(), name, since)).toBeLessThanOrEqual(2);
  // Only accepted patches count: the API server refuses one if the kubelet wrote first, and the pass sends it again.
  expect(resizesOf(name, since)).toHaveLength(PODS_OF_EACH);
});

it("a change of only resources restarts no container", async () => {
  await deploy("only", SMALL);
  await release("only", "registry.example/proxy:1", LARGE);
  await runPass(cluster, options({ sidecarSet: "only" }));
  const pods = await readPods(cluster, "only");
  expect(pods.map(memoryOf)).toEqual(Array(PODS_OF_EACH).fill("128Mi"));
  expect(pods.map((pod) => pod.status?.containerStatuses?.[1]?.restartCount)).toEqual(Array(PODS_OF_EACH).fill(0));
});

it("without gate InPlaceResize no pod is resized and the report names the field", async () => {
  await deploy("shut", SMALL);
  await release("shut", "registry.example/proxy:2", LARGE);
  const { sidecarSets, calls } = await runPass(
    cluster,
    options({ sidecarSet: "shut", settings: DEFAULT_ROLLOUT_SETTINGS }),
  );
  expect(sidecarSets[0]?.why).toContain("since more than images changed: spec.containers{proxy}.resources");
  expect(Object.keys(calls).filter((call) => call.includes("resize") || call.includes("discovery"))).toEqual([]);
});

it("a pass with nothing to resize does not ask whether the API server can resize", async () => {
  const { calls, problems } = await runPass(cluster, options({ sidecarSet: "only" }));
  expect(problems).toEqual([]);
  expect(calls).toEqual({
    "GET configmaps": 1,
    "GET sidecarsets": 1,
    "LIST controllerrevisions": 1,
    "LIST pods": 1,
  });
});

it("a rollout stays Blocked while a quota refuses a resize, and does not show Updating between two tries", async () => {
  await deploy("tight", SMALL);
  const since = test.history().length;
  await release("tight", "registry.example/proxy:2", LARGE);
  const words = "exceeded quota: team, requested: memory=64Mi";
  const refusing: Cluster = {
    ...cluster,
    patch: async (resource, place, patch, more) => {
      if (more?.subresource === "resize") throw new KubeError(words, { code: 403, reason: "Forbidden" });
      return await cluster.patch(resource, place, patch, more);
    },
  };
  for (let pass = 0; pass < 4; pass++) await runPass(refusing, options({ sidecarSet: "tight", deadlineMs: 30_000 }));
  const said = test
    .history()
    .slice(since)
    .flatMap(({ resource, object }) => {
      const { status } = object as unknown as SidecarSet;
      const find = (wanted: string) => status?.conditions?.find(({ type }) => type === wanted);
      const [ready, blocked] = [find("Ready"), find("Blocked")];
      return resource === "sidecarsets" && ready ? [`${ready.reason} ${blocked?.reason}`] : [];
    });
  const changes = said.filter((word, index) => word !== said[index - 1]);
  expect(changes.slice(-3)).toEqual(["Updating NotBlocked", "Updating Refused", "Blocked Refused"]);
  const memory = async () => new Set((await readPods(cluster, "tight")).map(memoryOf));
  // Refused pods are tried again after ten minutes at most.
  const later = { ...cluster, serverTimeMs: () => Date.now() + 3_600_000 };
  for (let pass = 0; pass < 10 && (await memory()).has("64Mi"); pass++)
    await runPass(later, options({ sidecarSet: "tight" }));
  expect(await memory()).toEqual(new Set(["128Mi"]));
});

it.each<[string, ResourceRequirements, ResourceRequirements]>([
  ["grows", SMALL, LARGE],
  ["shrinks", LARGE, SMALL],
])("a pod that %s, and whose owner takes that back each time, holds up no other pods", async (what, before, after) => {
  const name = `back-${what}`;
  await deploy(name, before);
  await release(name, "registry.example/proxy:2", after);
  let takenBack = 0;
  const reverting: Cluster = {
    ...cluster,
    patch: async (resource, place, patch, more) => {
      const written = await cluster.patch(resource, place, patch, more);
      if (more?.subresource === "resize" && place.name === `${name}-0`) {
        takenBack++;
        const containers = [{ name: "proxy", resources: before }];
        await cluster.patch(resource, place, { type: "strategic", body: { spec: { containers } } }, more);
      }
      return written as never;
    },
  };
  for (let pass = 0; pass < 3; pass++) await runPass(reverting, options({ sidecarSet: name }));
  const pods = await readPods(cluster, name);
  const done = pods.filter((pod) => pod.spec.containers[1]?.image === "registry.example/proxy:2");
  expect(done.filter((pod) => memoryOf(pod) === after.requests?.["memory"])).toHaveLength(PODS_OF_EACH - 1);
  expect(takenBack).toBeGreaterThan(1);
  expect(takenBack).toBeLessThan(20);
});
