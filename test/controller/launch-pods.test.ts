/** Tests pods whose containers start in an order: the lines of a dry run, and how long a pass waits for the pods. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { launchPods } from "../../shared/controller/launch-priority/launch-pods.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { initializeLaunchPriority } from "../../shared/core/launch-priority/barriers.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { fastClock, KRUISE_NAMESPACE, NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";
import { serviceOf } from "./service.ts";

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

/** Creates a pod of two containers, of which the second starts first, as the pod webhook stores it. */
async function create(name: string, more: object = {}): Promise<void> {
  const containers = [0, 10].map((priority) => ({
    name: `c${priority}`,
    image: `registry.example/c${priority}:1`,
    env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: String(priority) }],
  }));
  const pod = newPod({ name, namespace: NAMESPACE }, { containers, ...more });
  const admitted = initializeLaunchPriority(pod, Math.random);
  if (!("spec" in admitted)) throw new Error(admitted.message);
  await cluster.create<Pod>(PODS, admitted);
}

it("a dry run prints one line for the new barrier, for each next key and for the end of the launch", async () => {
  // No scheduler knows the pod, so that no other client writes to it.
  await create("ordered", { schedulerName: "nobody" });
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

it("a pass uses lists when it cannot watch, as long as a launch makes progress", async () => {
  await create("unwatched");
  const unwatched: Cluster = {
    ...cluster,
    list: (resource, options) =>
      cluster.list(resource, { ...options, fieldSelector: `${options?.fieldSelector},metadata.name=unwatched` }),
    watch: () => {
      throw new KubeError("too old resource version", { code: 410, reason: "Expired", isOutcomeKnown: true });
    },
  };
  const service = serviceOf(unwatched, { clock: fastClock(50) });
  const { opened, completed, waiting } = await launchPods(service, AbortSignal.abort());
  expect({ opened, completed, waiting }).toEqual({ opened: 2, completed: 1, waiting: 0 });
  expect(service.problems).toEqual([]);
});
