/** Tests passes over ContainerRecreateRequests as the webhook stores them, with no other controller. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { POD_READY_CONDITION, RECREATE_POD_UID_LABEL, UNREADY_ACQUIRED } from "../../shared/api/names.ts";
import { actOnRequest } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { admitContainerRecreateRequest } from "../../shared/core/container-recreate/admit.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { containerRecreateRequestCrd } from "../../shared/install/manifests.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONTAINER_RECREATE_REQUESTS, NODES, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import {
  eventually,
  fastClock,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  const definitions = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };
  await cluster.create({ ...definitions, namespaced: false }, containerRecreateRequestCrd());
});
afterAll(() => test?.close());

const NAMES = ["first", "second", "third"];

const pass = async (through: Cluster, more: Partial<PassOptions> = {}) =>
  await runPass(through, {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: true,
    clock: fastClock(20),
    settings: DEFAULT_ROLLOUT_SETTINGS,
    ...more,
  });

/** Creates a ready pod, and a request that recreates its containers one after the other. */
async function prepare(name: string, metadata: object = {}): Promise<ContainerRecreateRequest> {
  const key = { namespace: NAMESPACE, name };
  const containers = NAMES.map((container) => ({ name: container, image: `registry.example/${container}:1` }));
  await cluster.create<Pod>(PODS, newPod(key, { containers }));
  const pod = await eventually(async () => {
    const found = await cluster.get<Pod>(PODS, key);
    expect(isReady(found)).toBe(true);
    return found;
  });
  const object = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: { ...key, ...metadata },
    spec: { podName: name, containers: NAMES.map((one) => ({ name: one })), strategy: { orderedRecreate: true } },
  };
  const group = { group: "apps.kruise.io", version: "v1beta1" };
  const review = {
    uid: "u",
    operation: "CREATE",
    resource: { ...group, resource: "containerrecreaterequests" },
    object,
  };
  const node = await cluster.get<KubernetesObject>(NODES, { name: pod.spec.nodeName ?? "" });
  const view = { pod, node, gates: { KruiseDaemon: true } };
  const admission = admitContainerRecreateRequest(review as unknown as AdmissionRequest, view);
  if (admission.kind !== "allowed") throw new Error(admission.message);
  return await cluster.create(CONTAINER_RECREATE_REQUESTS, admission.object as ContainerRecreateRequest);
}

const readRequest = (name: string) =>
  cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, { namespace: NAMESPACE, name });

const refusing = (isRefused: (resource: object, name: string) => boolean): Cluster => ({
  ...cluster,
  patch: (resource, key, patch, options) =>
    isRefused(resource, key.name)
      ? Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }))
      : cluster.patch(resource, key, patch, options),
});

it("a pass follows a request as long as it makes progress, even for a long time", async () => {
  await prepare("long");
  let passedMs = 0;
  const clock = fastClock(5);
  const later = { ...clock, now: () => clock.now() + passedMs };
  const slow: Cluster = {
    ...cluster,
    patch: async (resource, ...rest) => {
      const written = await cluster.patch(resource, ...rest);
      if (resource === PODS) passedMs += 40_000;
      return written as never;
    },
  };
  const { recreations } = await pass(slow, { clock: later });
  expect(recreations).toMatchObject({ recreated: 3, completed: 1 });
});

it("a pass reports a forbidden request with the missing role, does not count it, and serves the others", async () => {
  for (const name of ["forbidden", "permitted"]) await prepare(name);
  const { recreations, problems } = await pass(refusing((resource, name) => resource === PODS && name === "forbidden"));
  expect(problems).toEqual([
    "ContainerRecreateRequest shop/forbidden: no; infra/rbac/optional/container-recreate.yaml grants what is missing",
  ]);
  expect(recreations).toMatchObject({ recreated: 3, completed: 1 });
  await cluster.delete(CONTAINER_RECREATE_REQUESTS, { namespace: NAMESPACE, name: "forbidden" });
});

it("a pass releases an unready pod at its second attempt when somebody else has just changed the pod", async () => {
  const key = { namespace: NAMESPACE, name: "held" };
  const spec = {
    containers: [{ name: "app", image: "registry.example/app:1" }],
    readinessGates: [{ conditionType: POD_READY_CONDITION }],
  };
  const made = await cluster.create<Pod>(PODS, newPod(key, spec));
  const message = JSON.stringify([{ userAgent: "ContainerRecreateRequest", key: `${NAMESPACE}/held` }]);
  const conditions = [{ type: POD_READY_CONDITION, status: "False", message }];
  await cluster.patch(PODS, key, { type: "strategic", body: { status: { conditions } } }, { subresource: "status" });
  await cluster.create<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: {
      ...key,
      labels: { [RECREATE_POD_UID_LABEL]: made.metadata?.uid ?? "" },
      finalizers: [UNREADY_ACQUIRED],
    },
    spec: { podName: "held", containers: [{ name: "app" }] },
  });
  const over = { status: { phase: "Completed", completionTime: "2026-01-10T00:00:00Z" } };
  await cluster.patch(CONTAINER_RECREATE_REQUESTS, key, { type: "merge", body: over }, { subresource: "status" });
  let isBusy = true;
  const busy: Cluster = {
    ...cluster,
    patch: async (resource, ...rest) => {
      const body = { metadata: { annotations: { written: "by another" } } };
      if (resource === PODS && isBusy) await cluster.patch(PODS, key, { type: "merge", body });
      if (resource === PODS) isBusy = false;
      return cluster.patch(resource, ...rest);
    },
  };
  expect((await pass(busy)).problems).toEqual([]);
  expect((await readRequest("held")).metadata?.finalizers ?? []).toEqual([]);
  const { status } = await cluster.get<Pod>(PODS, key);
  expect(status?.conditions?.find(({ type }) => type === POD_READY_CONDITION)?.status).toBe("True");
});

it("a pass keeps foreign finalizers and does not overwrite a request that has changed", async () => {
  const created = await prepare("shared", { finalizers: ["example.com/keep"] });
  const on = (request: ContainerRecreateRequest, action: Parameters<typeof actOnRequest>[2]) =>
    actOnRequest(cluster, { request, pod: undefined }, action);
  const held = await on(created, { kind: "AddFinalizer" });
  expect(held?.request.metadata?.finalizers).toEqual(["example.com/keep", expect.stringMatching(/unready-acquired/)]);
  const waits = await on(held?.request ?? created, {
    kind: "PatchRequestStatus",
    status: { phase: "Pending", message: "waits" },
  });
  const begun = await on(waits?.request ?? created, { kind: "PatchRequestStatus", status: { phase: "Recreating" } });
  expect(begun?.request.status).toEqual({ phase: "Recreating" });
  const released = await on(begun?.request ?? created, { kind: "RemoveFinalizer" });
  expect(released?.request.metadata?.finalizers).toEqual(["example.com/keep"]);
  const another = { ...created, metadata: { ...created.metadata, uid: "another" } };
  await expect(on(created, { kind: "AddFinalizer" })).rejects.toMatchObject({ code: 409 });
  await expect(on(created, { kind: "Deactivate" })).rejects.toMatchObject({ code: 409 });
  const failed = { kind: "PatchRequestStatus", status: { phase: "Failed" } } as const;
  await expect(on(created, failed)).rejects.toMatchObject({ code: 409 });
  await expect(on(another, { kind: "DeleteRequest" })).rejects.toMatchObject({ code: 409 });
  expect(await readRequest("shared")).toEqual(released?.request);
});
