/** What a dry run says of pods whose containers start in an order. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { initializeLaunchPriority } from "../../shared/core/launch-priority/barriers.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { KRUISE_NAMESPACE, NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const look = async (dryRun: boolean) =>
  (
    await runPass(cluster, {
      deadlineMs: 20_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      onlyLaunches: true,
      follow: false,
      dryRun,
      settings: DEFAULT_ROLLOUT_SETTINGS,
    })
  ).launches;

it("each step is a line: the barrier with its first key, the next key, and the end", async () => {
  const containers = [0, 10].map((priority) => ({
    name: `c${priority}`,
    image: `registry.example/c${priority}:1`,
    env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: String(priority) }],
  }));
  // Nobody schedules it, so that nobody else writes to it.
  const spec = { schedulerName: "nobody", containers };
  const pod = newPod({ name: "ordered", namespace: NAMESPACE }, spec);
  const admitted = initializeLaunchPriority(pod, Math.random);
  if (!("spec" in admitted)) throw new Error(admitted.message);
  await cluster.create<Pod>(PODS, admitted);
  const waiting = { opened: 0, completed: 0, waiting: 1, waitingPods: ["shop/ordered"] };
  expect(await look(true)).toEqual({
    ...waiting,
    planned: ["create ConfigMap shop/ordered-barrier with p_10"],
  });
  expect(await look(false)).toEqual({ ...waiting, opened: 1 });
  const status = { image: "", imageID: "", restartCount: 0 };
  const containerStatuses = [
    { ...status, name: "c0", ready: false, state: { waiting: { reason: "CreateContainerConfigError" } } },
    { ...status, name: "c10", ready: true, containerID: "cri://c10", state: { running: {} } },
  ];
  const body = { status: { phase: "Pending", containerStatuses } };
  const key = { namespace: NAMESPACE, name: "ordered" };
  await cluster.patch(PODS, key, { type: "strategic", body }, { subresource: "status" });
  expect(await look(true)).toEqual({
    ...waiting,
    planned: ["open p_0 in ConfigMap shop/ordered-barrier", "mark the launch of pod shop/ordered as completed"],
  });
});
