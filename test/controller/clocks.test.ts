/** Clocks of other machines that are wrong, and our own that is set: neither stops the work for long. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { type Cluster, LEASES } from "../../shared/kube/port.ts";
import { deploy, KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

const HOUR_MS = 3_600_000;

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  await deploy(cluster, "proxy", 1, {});
});
afterAll(() => test?.close());

describe("a Lease", () => {
  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  const pass = () => runPass(cluster, { kruiseNamespace: KRUISE_NAMESPACE, deadlineMs: 20_000, follow: false });
  const hold = async (aheadMs: number, leaseDurationSeconds: number) => {
    const renewTime = new Date(Date.now() + aheadMs).toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: "a laptop", leaseDurationSeconds, renewTime };
    await cluster.patch(LEASES, key, { type: "merge", body: { spec } });
  };

  it.each<[string, number, number]>([
    ["that a clock an hour ahead renewed, whose process is gone", HOUR_MS, 30],
    ["that says it holds for a day", -60_000, 86_400],
    ["that says it holds for a negative time", -1_000, -30],
  ])("%s, is taken", async (_, aheadMs, seconds) => {
    await pass();
    await hold(aheadMs, seconds);
    const report = await pass();
    expect(report.heldBy).toBeUndefined();
    expect(report.sidecarSets).toMatchObject([{ name: "proxy", stop: "oneRound" }]);
    expect(await cluster.get<KubernetesObject>(LEASES, key)).toMatchObject({ spec: { holderIdentity: "" } });
  });

  it.each([-20_000, 0, 20_000])("that was renewed %i ms from now is believed", async (aheadMs) => {
    await pass();
    await hold(aheadMs, 30);
    expect(await pass()).toMatchObject({ heldBy: "a laptop", sidecarSets: [] });
  });
});
