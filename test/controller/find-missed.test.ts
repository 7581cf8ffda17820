/** Tests which pods were created without the sidecars that they should have, and which only look so. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { findMissed, missedReport } from "../../shared/controller/rollout/observe-pods.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, SIDECARSETS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";

const CANARY = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "base" };
const { metadata, spec } = sidecarSet("base", 1, {});
const BASE: SidecarSet = { metadata: { ...metadata, creationTimestamp: "2026-11-01T00:00:00Z" }, spec };

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
  const canary = sidecarSet("canary", 1, {});
  await cluster.create<SidecarSet>(SIDECARSETS, { ...canary, metadata: { name: "canary", annotations: CANARY } });
  await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("other", 1, {}));
  await cluster.create(NAMESPACES, { metadata: { name: "managed", labels: { "control-plane": "other" } } });
});
afterAll(() => local?.close());

/** Returns a pod created after the SidecarSet. `injectedBy`: names separated by commas. */
function podIn(namespace: string, injectedBy?: string): Pod {
  const annotations = injectedBy === undefined ? {} : { annotations: { [INJECTED_LIST_ANNOTATION]: injectedBy } };
  return listedPod({ namespace, name: "web", creationTimestamp: "2026-11-02T00:00:00Z", ...annotations });
}

const find = (pods: readonly Pod[], through: Cluster = cluster) =>
  findMissed({ cluster: through, clock: systemClock }, BASE, pods);

const MANY_NAMES = Array.from({ length: 20 }, (_, index) => `none-${index}`).join();

it.each<[string, Pod]>([
  ["without any sidecars", podIn("shop")],
  ["with the sidecars of another SidecarSet", podIn("shop", "other")],
  ["with the sidecars of a deleted SidecarSet", podIn("shop", "not-there")],
  ["with the sidecars of more SidecarSets than are read one by one", podIn("shop", `other,${MANY_NAMES}`)],
])("findMissed returns a pod %s", async (_what, pod) => {
  expect(await find([pod])).toEqual([pod]);
});

it.each<[string, Pod]>([
  ["it has the canary's sidecars", podIn("shop", "canary")],
  ["it has the sidecars of the canary and of deleted SidecarSets", podIn("shop", "not-there,canary")],
  [
    "it has the sidecars of the canary and of more SidecarSets than are read one by one",
    podIn("shop", `canary,${MANY_NAMES}`),
  ],
  ["its namespace is outside of the webhook's registration", podIn("managed")],
  ["its namespace is excluded by name", podIn("kube-system")],
])("findMissed does not return a pod when %s", async (_what, pod) => {
  expect(await find([pod])).toEqual([]);
});

it("findMissed returns the result of its keep function for each missed pod", async () => {
  const [wanted, exempt] = [podIn("shop"), podIn("managed")];
  const keep = ({ metadata }: Pod) => listedPod({ namespace: metadata?.namespace ?? "", name: "kept" });
  const kept = await findMissed({ cluster, clock: systemClock }, BASE, [exempt, wanted], keep);
  expect(kept).toEqual([listedPod({ namespace: "shop", name: "kept" })]);
});

describe("findMissed without read access:", () => {
  const failing = (error: Error): Cluster => {
    const fail = () => Promise.reject(error);
    return { ...cluster, get: fail, list: fail };
  };
  const forbidden = new KubeError("namespaces is forbidden", { code: 403, reason: "Forbidden" });

  it("findMissed returns no pods without any read when every pod has the sidecars", async () => {
    expect(await find([podIn("shop", "base")], failing(forbidden))).toEqual([]);
  });

  it("findMissed returns undefined when reading is forbidden", async () => {
    expect(await find([podIn("shop")], failing(forbidden))).toBeUndefined();
  });

  it("findMissed rethrows an error that does not come from the API server", async () => {
    await expect(find([podIn("shop")], failing(new TypeError("a bug")))).rejects.toThrow("a bug");
  });
});

it("missedReport counts all pods, those of the last ten minutes, and names ten of them", () => {
  const now = Date.parse("2026-11-30T12:00:00Z");
  const pods = Array.from({ length: 11 }, (_, index) => {
    const pod = listedPod({ namespace: "shop", name: `web-${index}` });
    const creationTimestamp = index < 2 ? "2026-11-30T11:50:01Z" : "2026-11-30T11:50:00Z";
    return { ...pod, metadata: { ...pod.metadata, creationTimestamp } };
  });
  const named = Array.from({ length: 10 }, (_, index) => `shop/web-${index}`);
  expect(missedReport({ missed: pods }, now)).toEqual({ count: 11, recent: 2, pods: named });
  expect(missedReport({ missed: [] }, now)).toEqual({ count: 0, recent: 0, pods: [] });
  expect(missedReport({ missed: undefined }, now)).toBeUndefined();
});
