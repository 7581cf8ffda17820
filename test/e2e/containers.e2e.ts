/** Containers of pods on a real control plane, with the roles we ship: started in an order, replaced alone, ended with their job. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { ApiObject } from "../../infra/local/object.ts";
import { recreateInstallation } from "../../infra/manifests.ts";
import { optionalAccess } from "../../infra/rbac/optional-access.ts";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { ConfigMap, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { CONFIG_MAPS, CONTAINER_RECREATE_REQUESTS, PODS, type Resource } from "../../shared/kube/port.ts";
import { apiServer } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { follow } from "./support/follow.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { recordPods } from "./support/pod-history.ts";
import { isReady, Scene } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

let functions: StartedFunctions;
let installed: readonly KubernetesObject[] = [];
const cluster = () => clusterOf(apiServer());
beforeAll(async () => {
  functions = await startFunctions(apiServer());
  const features = ["launch-order", "sidecar-terminator"];
  const access = optionalAccess().flatMap(({ feature, objects }) => (features.includes(feature) ? objects : []));
  installed = [...access, ...recreateInstallation(functions.address)];
  expect(installed).toHaveLength(10);
  await createAll(cluster(), installed);
});
afterAll(async () => {
  await removeAll(cluster(), [...installed].reverse());
  await functions?.close();
});

async function openScene(): Promise<Scene> {
  const scene = new Scene(functions);
  onTestFinished(() => scene.close());
  await scene.createNamespace(scene.name);
  return scene;
}

const containerOf = (name: string, priority?: string) => ({
  name,
  image: `registry.example/${name}:1`,
  ...(priority ? { env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: priority }] } : {}),
});

const statusOf = (pod: Pod, container: string) => pod.status?.containerStatuses?.find(({ name }) => name === container);

/** When each container was first seen ready, and each key of a barrier first seen open, in milliseconds. */
function recordLaunch(scene: Scene) {
  const end = new AbortController();
  const firstMs = new Map<string, number>();
  const note = (what: string) => void firstMs.set(what, firstMs.get(what) ?? performance.now());
  const seePod = (object: ApiObject) => {
    const { status } = object as unknown as Pod;
    for (const { name, ready } of status?.containerStatuses ?? []) if (ready) note(name);
  };
  const seeMap = (object: ApiObject) => {
    for (const key of Object.keys((object as unknown as ConfigMap).data ?? {})) note(key);
  };
  const place = { cluster: scene.cluster, namespace: scene.name, signal: end.signal };
  const following = [
    follow({ ...place, resource: PODS, see: seePod }),
    follow({ ...place, resource: CONFIG_MAPS, see: seeMap }),
  ];
  onTestFinished(async () => {
    end.abort();
    await Promise.all(following);
  });
  return firstMs;
}

it("containers start in the order of their priorities, each key within 2 seconds", async () => {
  const scene = await openScene();
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const firstMs = recordLaunch(scene);
  const containers = [containerOf("last", "-1"), containerOf("first", "5"), containerOf("second")];
  await scene.createPod("ordered", { containers });
  await scene.untilReady(1);
  const states = (await history.versions()).map(({ object }) => object as unknown as Pod);
  const running = states.map((pod) =>
    containers.filter(({ name }) => statusOf(pod, name)?.state?.running).map(({ name }) => name),
  );
  expect([...new Set(running.flat())]).toEqual(["first", "second", "last"]);
  for (const pod of states) {
    if (statusOf(pod, "second")?.state?.running) expect(statusOf(pod, "first")?.ready).toBe(true);
    if (statusOf(pod, "last")?.state?.running) expect(statusOf(pod, "second")?.ready).toBe(true);
  }
  const stepMs = (ready: string, key: string) => (firstMs.get(key) ?? Number.NaN) - (firstMs.get(ready) ?? Number.NaN);
  const slowest = Math.max(stepMs("first", "p_0"), stepMs("second", "p_-1"));
  expect(slowest).toBeLessThanOrEqual(2_000);
  addFigure("states of pods looked at for the launch order", states.length);
  addFigure("slowest key of a launch, in ms", Math.round(slowest));
  const barrier = await scene.cluster.get<ConfigMap>(CONFIG_MAPS, { namespace: scene.name, name: "ordered-barrier" });
  expect(Object.keys(barrier.data ?? {}).toSorted()).toEqual(["p_-1", "p_0", "p_5"]);
  await scene.cluster.delete(PODS, { namespace: scene.name, name: "ordered" });
  const gone = () =>
    scene.cluster.get(CONFIG_MAPS, { namespace: scene.name, name: "ordered-barrier" }).then(
      () => "there",
      () => "gone",
    );
  await eventually(gone, (where) => expect(where).toBe("gone"));
});

it("a requested container is replaced, and no other", async () => {
  const scene = await openScene();
  await scene.createPod("shop", { containers: [containerOf("app"), containerOf("log")] });
  const [before] = await scene.untilReady(1);
  const beganMs = performance.now();
  const request = {
    apiVersion: "apps.kruise.io/v1alpha1",
    kind: "ContainerRecreateRequest",
    metadata: { name: "log", namespace: scene.name },
    spec: { podName: "shop", containers: [{ name: "log" }], strategy: { minStartedSeconds: 1 } },
  };
  await scene.cluster.create({ ...CONTAINER_RECREATE_REQUESTS, version: "v1alpha1" }, request);
  const key = { namespace: scene.name, name: "log" };
  const { status } = await eventually(
    () => scene.cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, key),
    (found) => expect(found.status?.phase).toBe("Completed"),
  );
  expect(status?.containerRecreateStates).toEqual([{ name: "log", phase: "Succeeded", isKilled: true }]);
  addFigure("a recreated container is back, in ms", Math.round(performance.now() - beganMs));
  const [after] = await scene.pods();
  if (!before || !after) throw new Error("the pod is gone");
  expect(statusOf(after, "log")?.containerID).not.toBe(statusOf(before, "log")?.containerID);
  expect(statusOf(after, "app")?.containerID).toBe(statusOf(before, "app")?.containerID);
  expect(isReady(after)).toBe(true);
  expect(after.metadata?.uid).toBe(before.metadata?.uid);
});

it("a request for a container that is not there is refused, in OpenKruise's words", async () => {
  const scene = await openScene();
  await scene.createPod("shop");
  await scene.untilReady(1);
  const metadata = { name: "wrong", namespace: scene.name };
  const wrong = { metadata, spec: { podName: "shop", containers: [{ name: "nope" }] } };
  const kind = { apiVersion: "apps.kruise.io/v1beta1", kind: "ContainerRecreateRequest" };
  const answer = scene.cluster.create(CONTAINER_RECREATE_REQUESTS, { ...kind, ...wrong });
  await expect(answer).rejects.toThrow("container nope not found in Pod");
});

const JOBS: Resource = { group: "batch", version: "v1", plural: "jobs", namespaced: true };

it("a job is complete although its sidecar runs for ever", async () => {
  const scene = await openScene();
  const env = [{ name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" }];
  const containers = [
    { name: "job", image: "registry.example/job:completes" },
    { ...containerOf("proxy"), env },
  ];
  const template = { spec: { restartPolicy: "Never", containers } };
  const spec = { template, backoffLimit: 0 };
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "job", namespace: scene.name }, spec };
  await scene.cluster.create<KubernetesObject>(JOBS, job);
  const key = { namespace: scene.name, name: "job" };
  await eventually(
    () => scene.cluster.get<KubernetesObject & { readonly status?: object }>(JOBS, key),
    ({ status }) =>
      expect(status).toMatchObject({
        succeeded: 1,
        conditions: [{ type: "SuccessCriteriaMet" }, { type: "Complete" }],
      }),
  );
  const [pod] = await scene.pods();
  expect(pod?.status?.phase).toBe("Succeeded");
  expect(pod?.status?.containerStatuses?.map(({ state }) => state?.terminated !== undefined)).toEqual([true, true]);
});
