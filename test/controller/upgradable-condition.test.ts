/** Tests that a later pass corrects the condition SidecarSetUpgradable, even if an earlier write failed. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  release,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const pass = (name: string, through: Cluster = cluster) =>
  runPass(through, {
    deadlineMs: 120_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    sidecarSet: name,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    clock: fastClock(20),
  });

const conditionOf = async (name: string) =>
  (await readPods(cluster, name))[0]?.status?.conditions?.find(({ type }) => type === "SidecarSetUpgradable");

/** Writes the condition of a pass that found differences in other fields than images. */
async function sayNo(name: string, by = name): Promise<void> {
  const condition = {
    type: "SidecarSetUpgradable",
    status: "False",
    reason: "UpdateImmutableField",
    message: JSON.stringify({ [by]: false }),
  };
  const patch = { type: "strategic", body: { status: { conditions: [condition] } } } as const;
  await cluster.patch(PODS, { namespace: NAMESPACE, name: `${name}-0` }, patch, { subresource: "status" });
}

it("the condition SidecarSetUpgradable is corrected after a pass was killed between a pod's two writes", async () => {
  const name = "killed";
  await deploy(cluster, name, 1, {});
  await sayNo(name);
  await release(cluster, name, 2);
  const killed = faultyCluster(cluster, "killAfter", (_, call) => call === "PATCH pods");
  await Promise.race([pass(name, killed), killed.struck]);
  expect(await conditionOf(name)).toMatchObject({ status: "False" });
  await pass(name);
  expect(await conditionOf(name)).toMatchObject({ status: "True", message: JSON.stringify({ [name]: true }) });
  const { calls } = await pass(name);
  expect(calls["PATCH pods/status"]).toBeUndefined();
});

it("the condition SidecarSetUpgradable is corrected after a late write, even when no pod is left to upgrade", async () => {
  await deploy(cluster, "late", 1, {});
  await release(cluster, "late", 2);
  await pass("late");
  await sayNo("late");
  await pass("late");
  expect(await conditionOf("late")).toMatchObject({ status: "True" });
});

it("the condition SidecarSetUpgradable of another SidecarSet is not changed", async () => {
  await deploy(cluster, "one", 1, {});
  await sayNo("one", "other");
  const { calls } = await pass("one");
  expect(calls["PATCH pods/status"]).toBeUndefined();
  expect(await conditionOf("one")).toMatchObject({ status: "False" });
});
