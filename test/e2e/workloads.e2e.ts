/** Owners of pods other than Deployments, and API servers that go away, on a real control plane. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { Resource } from "../../shared/kube/port.ts";
import { controlPlane, restartApiServer } from "./support/access.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { APP, Scene, setImage } from "./support/scene.ts";

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

const STATEFUL_SETS: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };
const BY_TWO = { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } };

function template() {
  return { metadata: { labels: { scene: scene.name } }, spec: { containers: [APP] } };
}

it("a StatefulSet's pods are updated in place and stay the same pods", async () => {
  await scene.open(BY_TWO);
  const selector = { matchLabels: { scene: scene.name } };
  const spec = { replicas: 4, serviceName: "app", podManagementPolicy: "Parallel", selector, template: template() };
  await scene.cluster.create(STATEFUL_SETS, {
    metadata: { name: "app", namespace: scene.name },
    spec,
  } as KubernetesObject);
  const before = await scene.untilReady(4);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  const after = await scene.untilUpdated(4);
  const uids = (pods: typeof before) => pods.map(({ metadata }) => metadata?.uid).toSorted();
  expect(uids(after)).toEqual(uids(before));
  expect(await scene.record(since)).toMatchObject({
    maxUnavailableObserved: 2,
    appContainerRestarts: 0,
    podPatches: 4,
  });
});

it("an API server that is killed in the middle of a rollout delays it, and the budget holds", async () => {
  await scene.open(BY_TWO);
  await scene.deploy(12);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  await expect.poll(async () => (await scene.updated()).length, { timeout: 20_000 }).toBeGreaterThan(0);
  await restartApiServer();
  await scene.untilUpdated(12);
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: 2, appContainerRestarts: 0 });
});
