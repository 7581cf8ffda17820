/**
 * Containers of pods on a real control plane, with the roles that we ship: started in order, recreated one at a time,
 * ended with their job.
 */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { ConfigMap, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { recreateInstallation } from "../../shared/install/manifests.ts";
import { optionalAccess } from "../../shared/install/rbac/optional-access.ts";
import { CONFIG_MAPS, CONTAINER_RECREATE_REQUESTS, PODS, type Resource } from "../../shared/kube/port.ts";
import { apiServer, isOnNode } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { recordLaunch } from "./support/launch-times.ts";
import { recordPods } from "./support/pod-history.ts";
import { atMost, isReady, Scene } from "./support/scene.ts";
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

it("containers start in the order of their priorities, each priority within 2 seconds", async () => {
  const scene = await openScene();
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const stepMs = recordLaunch(scene.cluster, scene.name);
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

it("a request recreates the requested container, and no other container", async () => {
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
  const old = before && statusOf(before, "log")?.containerID;
  await eventually(
    () => scene.pods(),
    ([pod]) => expect(pod && statusOf(pod, "log")).toMatchObject({ state: { running: {} }, containerID: not(old) }),
  );
  addFigure("a requested container has been replaced, in ms", Math.round(performance.now() - beganMs));
  const key = { namespace: scene.name, name: "log" };
  const { status } = await eventually(
    () => scene.cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, key),
    (found) => expect(found.status?.phase).toBe("Completed"),
  );
  expect(status?.containerRecreateStates).toEqual([{ name: "log", phase: "Succeeded", isKilled: true }]);
  addFigure("a request for a container is completed, in ms", Math.round(performance.now() - beganMs));
  const [after] = await scene.pods();
  if (!before || !after) throw new Error("the pod is gone");
  expect(statusOf(after, "log")?.containerID).not.toBe(statusOf(before, "log")?.containerID);
  expect(statusOf(after, "app")?.containerID).toBe(statusOf(before, "app")?.containerID);
  expect(isReady(after)).toBe(true);
  expect(after.metadata?.uid).toBe(before.metadata?.uid);
});

it("a request for a missing container is refused with OpenKruise's message", async () => {
  const scene = await openScene();
  await scene.createPod("shop");
  await scene.untilReady(1);
  const metadata = { name: "wrong", namespace: scene.name };
  const wrong = { metadata, spec: { podName: "shop", containers: [{ name: "nope" }] } };
  const kind = { apiVersion: "apps.kruise.io/v1beta1", kind: "ContainerRecreateRequest" };
  const answer = scene.cluster.create(CONTAINER_RECREATE_REQUESTS, { ...kind, ...wrong });
  await expect(answer).rejects.toThrow("container nope not found in Pod");
});

const not = (value: unknown) => expect.toSatisfy((other) => other !== value);
const RECREATED_AT_ONCE = 2;

it("the requests of a batch recreate no more containers at once than the batch allows", async () => {
  const scene = await openScene();
  const names = Array.from({ length: 4 }, (_, index) => `shop-${index}`);
  for (const name of names) await scene.createPod(name, { containers: [containerOf("app"), containerOf("log")] });
  await scene.untilReady(names.length);
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const beganMs = performance.now();
  const requests = names.map((name) => ({
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: {
      name,
      namespace: scene.name,
      labels: { "crr.sidecarset.kruise.io/batch": "all" },
      annotations: { "crr.sidecarset.kruise.io/max-unavailable": String(RECREATED_AT_ONCE) },
    },
    spec: { podName: name, containers: [{ name: "log" }] },
  }));
  await Promise.all(requests.map((request) => scene.cluster.create(CONTAINER_RECREATE_REQUESTS, request)));
  await eventually(
    () => scene.cluster.list<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, { namespace: scene.name }),
    ({ items }) => expect(items.map(({ status }) => status?.phase)).toEqual(names.map(() => "Completed")),
  );
  addFigure("a batch of 4 requests, 2 at once, is completed, in ms", Math.round(performance.now() - beganMs));
  const down = new Set<string>();
  let most = 0;
  for (const { object } of await history.versions()) {
    if (isReady(object as unknown as Pod)) down.delete(object.metadata.name ?? "");
    else down.add(object.metadata.name ?? "");
    most = Math.max(most, down.size);
  }
  // A real kubelet finishes the restart before it updates the pod's conditions.
  if (isOnNode()) expect(most).toBeLessThanOrEqual(RECREATED_AT_ONCE);
  else expect(most).toEqual(atMost(RECREATED_AT_ONCE));
  const statuses = (await scene.pods()).map((pod) => [statusOf(pod, "log"), statusOf(pod, "app")]);
  const restarts = statuses.map((of) => of.map((status) => status?.restartCount));
  expect(restarts).toEqual(names.map(() => [1, 0]));
  addFigure("containers recreated in a batch", restarts.length);
});

const JOBS: Resource = { group: "batch", version: "v1", plural: "jobs", namespaced: true };

it("a job completes although its sidecar never ends by itself", async () => {
  const scene = await openScene();
  const env = ["WHEN_JOB_EXIT", "IGNORE_EXIT_CODE"].map((name) => ({
    name: `KRUISE_TERMINATE_SIDECAR_${name}`,
    value: "true",
  }));
  const containers = [
    { name: "job", image: "registry.example/job:completes" },
    { ...containerOf("proxy"), env },
  ];
  const template = { spec: { restartPolicy: "Never", containers } };
  const spec = { template, backoffLimit: 0 };
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "job", namespace: scene.name }, spec };
  await scene.cluster.create<KubernetesObject>(JOBS, job);
  await eventually(
    () => scene.pods(),
    ([found]) => expect(found && statusOf(found, "job")?.state?.terminated).toBeDefined(),
  );
  const doneMs = performance.now();
  const key = { namespace: scene.name, name: "job" };
  await eventually(
    () => scene.cluster.get<KubernetesObject & { readonly status?: object }>(JOBS, key),
    ({ status }) =>
      expect(status).toMatchObject({
        succeeded: 1,
        conditions: [{ type: "SuccessCriteriaMet" }, { type: "Complete" }],
      }),
  );
  addFigure("a job is complete after its own container, in ms", Math.round(performance.now() - doneMs));
  await eventually(
    () => scene.pods(),
    ([pod]) => {
      expect(pod?.status?.phase).toBe("Succeeded");
      expect(pod?.status?.containerStatuses?.map(({ state }) => state?.terminated !== undefined)).toEqual([true, true]);
    },
  );
});

it("a pod that waits for its readiness gate gets the condition", async () => {
  const scene = await openScene();
  const readinessGates = [{ conditionType: "KruisePodReady" }];
  const beganMs = performance.now();
  await scene.createPod("gated", { containers: [containerOf("app")], readinessGates });
  await scene.untilReady(1);
  const ms = Math.round(performance.now() - beganMs);
  addFigure("a pod with the readiness gate is ready, in ms from its creation", ms);
  expect(functions.errors).toEqual([]);
});
