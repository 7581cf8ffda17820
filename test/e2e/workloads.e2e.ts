/**
 * Tests owners of pods other than Deployments, pods that finish, and API servers that disappear, on a real control
 * plane.
 */
import { expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { PODS, type Resource } from "../../shared/kube/port.ts";
import { restartApiServer } from "./support/access.ts";
import { scenes } from "./support/open-scene.ts";
import { APP, atMost, imageOf, type Scene, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();

const STATEFUL_SETS: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };
const JOBS: Resource = { group: "batch", version: "v1", plural: "jobs", namespaced: true };
const BY_TWO = { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } };

function createOwner({ cluster, name, labels }: Scene, resource: Resource, spec: object, podSpec: object = {}) {
  const template = { metadata: { labels }, spec: { containers: [APP], ...podSpec } };
  const object = { metadata: { name: "app", namespace: name }, spec: { ...spec, template } };
  return cluster.create(resource, object as KubernetesObject);
}

function uids(pods: readonly Pod[]) {
  return pods.map(({ metadata }) => metadata?.uid).toSorted();
}

async function rollOut(scene: Scene, pods: number): Promise<void> {
  const before = await scene.untilReady(pods);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  expect(uids(await scene.untilUpdated(pods))).toEqual(uids(before));
  expect(await scene.record(since)).toMatchObject({
    maxUnavailableObserved: atMost(2),
    appContainerRestarts: 0,
    podPatches: pods,
  });
}

it("a StatefulSet's pods are updated in place and stay the same pods", async () => {
  const scene = await openScene(BY_TWO);
  const selector = { matchLabels: scene.labels };
  await createOwner(scene, STATEFUL_SETS, {
    replicas: 4,
    serviceName: "app",
    podManagementPolicy: "Parallel",
    selector,
  });
  await rollOut(scene, 4);
});

it.each(["OnFailure", "Never"])("a Job's pods with restart policy %s are updated in place", async (restartPolicy) => {
  const scene = await openScene(BY_TWO);
  // With policy OnFailure every restart counts against the limit, also the update's.
  const backoffLimit = restartPolicy === "OnFailure" ? 5 : 0;
  await createOwner(scene, JOBS, { parallelism: 4, completions: 4, backoffLimit }, { restartPolicy });
  await rollOut(scene, 4);
  const key = { namespace: scene.name, name: "app" };
  const { status } = await eventually(
    () => scene.cluster.get<KubernetesObject & { readonly status?: object }>(JOBS, key),
    (job) => expect(job.status).toMatchObject({ active: 4, ready: 4 }),
  );
  expect(status).not.toHaveProperty("failed");
});

it("a rollout neither waits for ended pods nor updates them", async () => {
  const scene = await openScene(BY_TWO);
  for (const name of ["one", "two"]) await scene.createPod(name);
  await scene.untilReady(2);
  for (const phase of ["Succeeded", "Failed"]) {
    const key = { namespace: scene.name, name: phase.toLowerCase() };
    await scene.createPod(key.name, { schedulerName: "nobody" });
    await scene.cluster.patch(PODS, key, { type: "merge", body: { status: { phase } } }, { subresource: "status" });
  }
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(2);
  expect((await scene.untilSettled()).status).toMatchObject({ matchedPods: 2, updatedReadyPods: 2 });
  const images = (await scene.pods()).map((pod) => `${pod.metadata?.name} ${imageOf(pod, "agent")}`);
  expect(images).toEqual(["failed agent:v1", "one agent:v2", "succeeded agent:v1", "two agent:v2"]);
});

it("an API server that is killed in the middle of a rollout delays it, and the budget holds", async () => {
  const scene = await openScene(BY_TWO);
  await scene.deploy(12);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  await eventually(
    () => scene.updated(),
    (pods) => expect(pods).not.toEqual([]),
  );
  await restartApiServer();
  await scene.untilUpdated(12);
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: atMost(2), appContainerRestarts: 0 });
});
