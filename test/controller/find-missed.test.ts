/** Which pods were made without the sidecars that they should have, and which only look so. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { findMissed, missedReport } from "../../shared/controller/rollout/find-missed.ts";
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

/** Made after the SidecarSet; `injectedBy`: names with commas. */
function podIn(namespace: string, injectedBy?: string): Pod {
  const annotations = injectedBy === undefined ? {} : { annotations: { [INJECTED_LIST_ANNOTATION]: injectedBy } };
  return listedPod({ namespace, name: "web", creationTimestamp: "2026-11-02T00:00:00Z", ...annotations });
}

const find = (pods: readonly Pod[], through: Cluster = cluster) =>
  findMissed({ cluster: through, clock: systemClock }, BASE, pods);

const MANY_NAMES = Array.from({ length: 20 }, (_, index) => `none-${index}`).join();

describe("a pod without the sidecars", () => {
  it.each<[string, Pod]>([
    ["that has none at all", podIn("shop")],
    ["that has those of another SidecarSet", podIn("shop", "other")],
    ["that has those of a SidecarSet that is gone", podIn("shop", "not-there")],
    ["that has those of more SidecarSets than are read one by one", podIn("shop", `other,${MANY_NAMES}`)],
  ])("has missed them: one %s", async (_what, pod) => {
    expect(await find([pod])).toEqual([pod]);
  });

  it.each<[string, Pod]>([
    ["has those of the canary", podIn("shop", "canary")],
    ["has those of the canary and of others that are gone", podIn("shop", "not-there,canary")],
    ["has those of the canary and of more others than are read one by one", podIn("shop", `canary,${MANY_NAMES}`)],
    ["is in a namespace that the webhook is not registered for", podIn("managed")],
    ["is in a namespace that is left out by name", podIn("kube-system")],
  ])("should have none where it %s", async (_what, pod) => {
    expect(await find([pod])).toEqual([]);
  });

  it("is kept in the way that is asked for", async () => {
    const [wanted, exempt] = [podIn("shop"), podIn("managed")];
    const keep = ({ metadata }: Pod) => listedPod({ namespace: metadata?.namespace ?? "", name: "kept" });
    const kept = await findMissed({ cluster, clock: systemClock }, BASE, [exempt, wanted], keep);
    expect(kept).toEqual([listedPod({ namespace: "shop", name: "kept" })]);
  });
});

describe("where nothing can be read", () => {
  const failing = (error: Error): Cluster => {
    const fail = () => Promise.reject(error);
    return { ...cluster, get: fail, list: fail };
  };
  const forbidden = new KubeError("namespaces is forbidden", { code: 403, reason: "Forbidden" });

  it("nothing has to be where every pod has the sidecars", async () => {
    expect(await find([podIn("shop", "base")], failing(forbidden))).toEqual([]);
  });

  it("it is not known which pods have missed them", async () => {
    expect(await find([podIn("shop")], failing(forbidden))).toBeUndefined();
  });

  it("what is no answer of the API server is not hidden", async () => {
    await expect(find([podIn("shop")], failing(new TypeError("a bug")))).rejects.toThrow("a bug");
  });
});

it("a report counts all of them and names ten", () => {
  const pods = Array.from({ length: 11 }, (_, index) => listedPod({ namespace: "shop", name: `web-${index}` }));
  const named = Array.from({ length: 10 }, (_, index) => `shop/web-${index}`);
  expect(missedReport({ missed: pods })).toEqual({ count: 11, pods: named });
  expect(missedReport({ missed: [] })).toEqual({ count: 0, pods: [] });
  expect(missedReport({ missed: undefined })).toBeUndefined();
});
