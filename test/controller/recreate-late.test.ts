/** Tests that a request is served even if its deadline is shorter than the time between two passes. */

import { afterAll, beforeAll, expect, it } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { containerRecreateRequestCrd } from "../../shared/install/manifests.ts";
import { CONTAINER_RECREATE_REQUESTS, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { eventually, isReady, KRUISE_NAMESPACE, NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

let local: TestCluster;
beforeAll(async () => {
  local = await startTestCluster();
  const group = "apiextensions.k8s.io";
  const definitions = { group, version: "v1", plural: "customresourcedefinitions", namespaced: false };
  await local.cluster.create(definitions, containerRecreateRequestCrd());
});
afterAll(() => local?.close());

const MINUTE_MS = 60_000;

it("a request with a deadline of five seconds is still served by a pass a minute later", async () => {
  const { cluster } = local;
  const key = { namespace: NAMESPACE, name: "late" };
  const spec = { containers: [{ name: "app", image: "registry.example/app:1" }] };
  await cluster.create<Pod>(PODS, newPod(key, spec));
  const running = await eventually(async () => {
    const pod = await cluster.get<Pod>(PODS, key);
    if (!isReady(pod)) throw new Error("it is not ready");
    return pod;
  });
  const [app] = running.status?.containerStatuses ?? [];
  const statusContext = { containerID: app?.containerID ?? "", restartCount: app?.restartCount ?? 0 };
  await cluster.create<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: { ...key, labels: { "crr.apps.kruise.io/pod-uid": running.metadata?.uid ?? "" } },
    spec: { podName: "late", containers: [{ name: "app", statusContext }], activeDeadlineSeconds: 5 },
  });
  const clock = { ...systemClock, epochMs: () => Date.now() + MINUTE_MS };
  await runPass(cluster, {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 20_000,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    withoutSidecarSets: true,
    clock,
  });
  const { status } = await cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, key);
  expect(status).toMatchObject({ phase: "Completed", containerRecreateStates: [{ name: "app", phase: "Succeeded" }] });
  expect(status?.message ?? "").toBe("");
  expect((await cluster.get<Pod>(PODS, key)).status?.containerStatuses?.[0]?.restartCount).toBe(1);
});
