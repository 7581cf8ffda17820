/** Tests a pass over ContainerRecreateRequests, one look at a time, and its dry run. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { ContainerStatus, Pod, PodSpec } from "../../shared/api/kubernetes.ts";
import {
  POD_READY_CONDITION,
  RECREATE_ACTIVE_LABEL,
  RECREATE_POD_UID_LABEL,
  UNREADY_ACQUIRED,
} from "../../shared/api/names.ts";
import { actOnRequest } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { containerRecreateRequestCrd } from "../../shared/install/manifests.ts";
import { type Cluster, CONTAINER_RECREATE_REQUESTS, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { eventually, KRUISE_NAMESPACE, NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  const definitions = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };
  await cluster.create({ ...definitions, namespaced: false }, containerRecreateRequestCrd());
});
afterAll(() => test?.close());
afterEach(async () => {
  const { items } = await cluster.list(CONTAINER_RECREATE_REQUESTS);
  for (const { metadata } of items) {
    const key = keyOf(metadata?.name ?? "");
    const free = { type: "merge", body: { metadata: { finalizers: null } } } as const;
    await cluster.patch(CONTAINER_RECREATE_REQUESTS, key, free);
    await cluster.delete(CONTAINER_RECREATE_REQUESTS, key);
  }
});

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
const readPod = (name: string) => cluster.get<Pod>(PODS, keyOf(name));
const readRequest = (name: string) => cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, keyOf(name));

/** Runs one look at all requests. */
async function look(more: Partial<PassOptions> = {}, through = cluster) {
  const { recreations, problems } = await runPass(through, {
    deadlineMs: 20_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    withoutSidecarSets: true,
    follow: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    ...more,
  });
  return { recreations, problems };
}

/** Creates containers "a" and "b", and waits until they run. */
async function deploy(name: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  const containers = ["a", "b"].map((one) => ({ name: one, image: `nginx:${one}` }));
  await cluster.create<Pod>(PODS, newPod(keyOf(name), { containers, ...spec }));
  return await eventually(async () => {
    const pod = await readPod(name);
    expect(pod.status?.conditions?.find(({ type }) => type === "ContainersReady")?.status).toBe("True");
    return pod;
  });
}

/** Returns the same image, named by its digest. */
function alias(pod: Pod, container: string): string {
  const { imageID = "" } = pod.status?.containerStatuses?.find(({ name }) => name === container) ?? {};
  return `nginx:${container}@${imageID.split("@")[1]}`;
}

function contextOf({ containerID = "", restartCount = 0 }: ContainerStatus) {
  return { containerID, restartCount };
}

interface Asked {
  readonly strategy?: object;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Creates a request for all containers of the pod, as the webhook stores it. */
function ask(
  name: string,
  pod: Pod,
  { strategy = {}, labels = { [RECREATE_POD_UID_LABEL]: pod.metadata?.uid ?? "" } }: Asked = {},
): Promise<ContainerRecreateRequest> {
  const containers = pod.status?.containerStatuses?.map((one) => ({ name: one.name, statusContext: contextOf(one) }));
  return cluster.create<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: { ...keyOf(name), labels },
    spec: { podName: pod.metadata?.name ?? "", containers: containers ?? [], strategy },
  });
}

it("a pass counts recreated containers and completed requests, and writes why another request waits", async () => {
  const pod = await deploy("counted");
  await ask("counted-1", pod);
  await ask("counted-2", pod);
  await ask("counted-3", await deploy("other"), { labels: {} });
  expect(await look()).toEqual({
    problems: [],
    recreations: { requests: 3, recreated: 2, completed: 1, waiting: 1 },
  });
  const { spec } = await readPod("counted");
  expect(spec.containers.map(({ image }) => image)).toEqual([alias(pod, "a"), alias(pod, "b")]);
  expect((await readRequest("counted-2")).status).toEqual({
    phase: "Pending",
    message: "waits for another request for the same pod",
  });
});

it.each<[string, object]>([
  ["ended", {}],
  ["ended-in-grace", { unreadyGracePeriodSeconds: 30 }],
])("a pass does not touch the pod of a request that another pass has completed: request %s", async (name, strategy) => {
  const pod = await deploy(name, { readinessGates: [{ conditionType: POD_READY_CONDITION }] });
  const made = await ask(name, pod, { strategy });
  const held = { type: "merge", body: { metadata: { finalizers: [UNREADY_ACQUIRED] } } } as const;
  await cluster.patch(CONTAINER_RECREATE_REQUESTS, keyOf(name), held);
  const late: Cluster = {
    ...cluster,
    list: async (resource, options) => {
      const listed = await cluster.list(resource, options);
      const over = { status: { phase: "Completed", completionTime: made.metadata?.creationTimestamp } };
      if (resource === CONTAINER_RECREATE_REQUESTS)
        await cluster.patch(resource, keyOf(name), { type: "merge", body: over }, { subresource: "status" });
      return listed as never;
    },
  };
  expect(await look({}, late)).toEqual({
    problems: [],
    recreations: { requests: 1, recreated: 0, completed: 0, waiting: 0 },
  });
  expect((await readPod(name)).metadata?.resourceVersion).toBe(pod.metadata?.resourceVersion);
});

it("Deactivate removes the active label from a request and keeps its other labels", async () => {
  const pod = await deploy("over");
  const labels = { team: "shop", [RECREATE_ACTIVE_LABEL]: "true" };
  const request = await ask("over", pod, { labels });
  const after = await actOnRequest(cluster, { request, pod }, { kind: "Deactivate" });
  expect(after).toEqual({ request: await readRequest("over"), pod });
  expect(after?.request.metadata?.labels).toEqual({ team: "shop" });
});

it("a dry run names the step for a request that has ended", async () => {
  const pod = await deploy("ended-dry");
  await ask("ended-dry", pod, { labels: { [RECREATE_ACTIVE_LABEL]: "true" } });
  const body = { status: { phase: "Completed", completionTime: "2026-01-10T00:00:00Z" } };
  const patch = { type: "merge", body } as const;
  await cluster.patch(CONTAINER_RECREATE_REQUESTS, keyOf("ended-dry"), patch, { subresource: "status" });
  const { recreations } = await look({ dryRun: true });
  expect(recreations?.planned).toEqual(["ContainerRecreateRequest shop/ended-dry: Deactivate"]);
});
