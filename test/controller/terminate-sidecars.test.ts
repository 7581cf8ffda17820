/** Jobs whose sidecars could not be ended, and how long a pass looks for others. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { terminateSidecars } from "../../shared/controller/sidecar-terminator/terminate-sidecars.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { faultyCluster } from "./faults.ts";
import { KRUISE_NAMESPACE, NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";
import { serviceOf } from "./service.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const SETTINGS = { ...DEFAULT_ROLLOUT_SETTINGS, SidecarTerminator: true };

async function look(through: Cluster, more: Partial<PassOptions> = {}) {
  const { terminations, problems } = await runPass(through, {
    deadlineMs: 20_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    withoutSidecarSets: true,
    follow: false,
    settings: SETTINGS,
    ...more,
  });
  return { terminations, problems };
}

const NONE = { finished: 0, swapped: 0, left: 0 };

it("says why it could not look for jobs", async () => {
  const refusing: Cluster = {
    ...cluster,
    list: (resource, options) =>
      options?.fieldSelector?.startsWith("spec.restartPolicy")
        ? Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }))
        : cluster.list(resource, options),
  };
  expect(await look(refusing)).toEqual({ terminations: NONE, problems: ["sidecars of jobs are not ended: no"] });
});

it("leaves a pod whose node there is not, and says so", async () => {
  const env = [{ name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" }];
  const containers = [
    { name: "job", image: "job:1" },
    { name: "proxy", image: "proxy:1", env },
  ];
  const spec = { restartPolicy: "Never", nodeName: "absent", containers };
  const key = { namespace: NAMESPACE, name: "nowhere" };
  await cluster.create<Pod>(PODS, newPod(key, spec));
  const containerStatuses = [
    { name: "job", image: "job:1", imageID: "", ready: false, restartCount: 0, state: { terminated: { exitCode: 0 } } },
    { name: "proxy", image: "proxy:1", imageID: "", ready: true, restartCount: 0, state: { running: {} } },
  ];
  const body = { status: { phase: "Running", containerStatuses } };
  await cluster.patch(PODS, key, { type: "strategic", body }, { subresource: "status" });
  expect(await look(cluster)).toEqual({
    terminations: NONE,
    problems: ['sidecars of job pods such as shop/nowhere: nodes "absent" not found'],
  });
  await cluster.delete(PODS, key);
});

it.each([
  [true, 3],
  [false, 1],
])(
  "looks for jobs again and again until the rest of a pass is served, where that follows: %s",
  async (follows, lists) => {
    const served = new AbortController();
    const slept: number[] = [];
    const sleep = async (ms: number) => {
      slept.push(ms);
      if (slept.length === 3) served.abort();
    };
    const counted = faultyCluster(cluster, "unavailable", () => false);
    const more = { clock: { ...systemClock, sleep }, settings: SETTINGS, isFollowing: follows };
    expect(await terminateSidecars(serviceOf(counted, more), served.signal)).toEqual(NONE);
    expect(counted.calls).toEqual(new Array(lists).fill("LIST pods"));
    expect(slept).toEqual(follows ? [5_000, 5_000, 5_000] : []);
  },
);
