import { afterAll, beforeAll, expect, it } from "vitest";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
  readPods,
  release,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test.close());

/** Returns the number of status patches for each pod of a first rollout, and whether the pod then has the condition. */
async function rollOut(name: string, isSkipped: boolean) {
  const { cluster } = test;
  await deploy(cluster, name, 3, { maxUnavailable: 3 });
  await release(cluster, name, 2, { maxUnavailable: 3 });
  const { calls, sidecarSets } = await runPass(cluster, {
    deadlineMs: 120_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    sidecarSet: name,
    settings: { ...DEFAULT_ROLLOUT_SETTINGS, SkipUpgradableCondition: isSkipped },
    follow: true,
    clock: fastClock(20),
  });
  expect(sidecarSets).toMatchObject([{ stop: "settled", tally: { upgraded: 3 } }]);
  const pods = await readPods(cluster, name);
  const conditions = pods.flatMap(({ status }) => status?.conditions ?? []);
  return {
    calls: calls["PATCH pods/status"] ?? 0,
    conditions: conditions.filter(({ type }) => type === "SidecarSetUpgradable").length,
  };
}

it("with gate SkipUpgradableCondition upgraded pods get no condition", async () => {
  expect(await rollOut("gated", true)).toEqual({ calls: 0, conditions: 0 });
});

it("without gate SkipUpgradableCondition every upgraded pod gets the condition in one write", async () => {
  expect(await rollOut("plain", false)).toEqual({ calls: 3, conditions: 3 });
});
