/** Tests that a rollout with failing pods stops before it has used its budget, and continues with a good image. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let local: TestCluster;
beforeAll(async () => {
  local = await startTestCluster();
});
afterAll(() => local?.close());

const pass = (deadlineMs: number, sidecarSet = "wrong") =>
  runPass(local.cluster, {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    sidecarSet,
  });

test("with a budget for all pods, no more pods are upgraded once more pods fail than halt-on allows", async () => {
  const { cluster } = local;
  await deploy(cluster, "wrong", 8, { maxUnavailable: 2 });
  const annotations = { "sidecarset.kruise.io/halt-on": "1" };
  await cluster.patch(SIDECARSETS, { name: "wrong" }, { type: "merge", body: { metadata: { annotations } } });
  await release(cluster, "wrong", 2, { maxUnavailable: 2, image: "registry.example/proxy:does-not-exist" });
  await pass(6_000);
  await release(cluster, "wrong", 2, { maxUnavailable: 8, image: "registry.example/proxy:does-not-exist" });
  const [report] = (await pass(4_000)).sidecarSets;
  expect(report?.why).toContain("halted, since too many updated pods fail; 2 of 8 pods updated");
  const { status } = await readSet(cluster, "wrong");
  expect(status).toMatchObject({ updatedPods: 2 });
  expect(status?.conditions?.find(({ type }) => type === "Blocked")).toMatchObject({
    status: "True",
    reason: "Halted",
    message: expect.stringContaining("2 of 2 updated pods fail"),
  });

  await release(cluster, "wrong", 3, { maxUnavailable: 8 });
  const [good] = (await pass(10_000)).sidecarSets;
  expect(good?.why).toBe("8 of 8 pods updated, 8 of them ready");
  expect(new Set(versionsOf(await readPods(cluster, "wrong")))).toEqual(new Set(["3"]));
});

test("with a budget for all of 400 pods, at most a hundred get an image that cannot be pulled", async () => {
  const { cluster } = local;
  await deploy(cluster, "many", 400, { maxUnavailable: "100%" });
  const annotations = { "sidecarset.kruise.io/halt-on": "3" };
  await cluster.patch(SIDECARSETS, { name: "many" }, { type: "merge", body: { metadata: { annotations } } });
  await release(cluster, "many", 2, { maxUnavailable: "100%", image: "registry.example/proxy:does-not-exist" });
  await pass(10_000, "many");
  expect((await readSet(cluster, "many")).status).toMatchObject({ matchedPods: 400, updatedPods: 100 });
  await release(cluster, "many", 3, { maxUnavailable: "100%" });
  const [good] = (await pass(30_000, "many")).sidecarSets;
  expect(good?.why).toBe("400 of 400 pods updated, 400 of them ready");
});
