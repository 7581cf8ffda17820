/** Tests the facts of a pass' decision, as callers read them that write nothing. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ConfigMap, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { readObservation } from "../../shared/controller/rollout/read-observation.ts";
import { steered } from "../../shared/core/pod/steering/steered.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NOTHING_RESERVED } from "../../shared/core/rollout/select/reserved.ts";
import { type Cluster, CONFIG_MAPS, DEPLOYMENTS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  eventually,
  imageOf,
  injectedPod,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
});
afterAll(() => local?.close());

function read(name: string, changed?: SidecarSet) {
  const clock = { ...systemClock, epochMs: () => Date.parse("2026-11-27T12:00:00Z") };
  const context = { cluster, clock, kruiseNamespace: KRUISE_NAMESPACE, settings: DEFAULT_ROLLOUT_SETTINGS };
  return readObservation(context, name, changed);
}

it("readObservation returns undefined for a missing SidecarSet", async () => {
  expect(await read("absent")).toBeUndefined();
});

it("readObservation returns the SidecarSet, its pods with their owners, and the time", async () => {
  await deploy(cluster, "proxy", 1, {});
  const owned = injectedPod("proxy", "proxy-owned");
  const inShop = { namespace: NAMESPACE, name: "owner" };
  const { metadata } = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: inShop });
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: metadata?.uid ?? "", controller: true };
  await cluster.create<Pod>(PODS, { ...owned, metadata: { ...owned.metadata, ownerReferences: [owner] } });
  const { observation, context, missed } = (await read("proxy")) ?? {};
  const { pods = [], ...rest } = observation ?? {};
  expect(pods.map(({ metadata }) => metadata?.name)).toEqual(["proxy-0", "proxy-owned"]);
  expect(pods[1]?.metadata?.ownerReferences).toMatchObject([owner]);
  expect(rest).toEqual({
    sidecarSet: steered(await readSet(cluster, "proxy")),
    revisions: [],
    taken: [],
    checks: [],
    kubelets: new Map(),
    isResizeServed: false,
    namespaceLabels: new Map(),
    disruptionBudgets: [],
    reserved: NOTHING_RESERVED,
  });
  expect(context).toEqual({
    now: "2026-11-27T12:00:00Z",
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });
  expect(missed).toEqual([]);
});

it("readObservation can use another SidecarSet in place of the stored one", async () => {
  await deploy(cluster, "changed", 1, {});
  const { metadata, spec } = sidecarSet("changed", 2, { paused: true });
  const { observation } = (await read("changed", { metadata: { ...metadata, name: "changed" }, spec })) ?? {};
  expect(observation?.sidecarSet.spec).toEqual(spec);
  expect(observation?.pods.map((pod) => pod.spec.containers[1]?.image)).toEqual([imageOf(1)]);
});

it("readObservation returns the workloads that a pass would restart next", async () => {
  const { metadata, spec } = injectedPod("restarted", "", 2);
  const { name: _, namespace: _own, ...template } = metadata ?? {};
  const body = { replicas: 1, selector: { matchLabels: template.labels }, template: { metadata: template, spec } };
  await cluster.create(DEPLOYMENTS, {
    metadata: { name: "web", namespace: NAMESPACE },
    spec: body,
  } as KubernetesObject);
  await eventually(async () => expect((await readPods(cluster, "restarted")).length).toBe(1));
  const [pod] = await readPods(cluster, "restarted");
  const record = JSON.stringify({ restarted: { hash: "old", sidecarSetName: "restarted", sidecarList: ["proxy"] } });
  const outdated = {
    metadata: { annotations: { [HASH_ANNOTATION]: record, [HASH_WITHOUT_IMAGE_ANNOTATION]: record } },
  };
  const key = { namespace: NAMESPACE, name: pod?.metadata?.name ?? "" };
  await cluster.patch(PODS, key, { type: "merge", body: outdated });
  const set = sidecarSet("restarted", 2, {});
  const annotations = { ...set.metadata?.annotations, [REPLACE_ANNOTATION]: "NotUpgradable,Restart" };
  await cluster.create(SIDECARSETS, { ...set, metadata: { name: "restarted", annotations } });

  const { restarting } = (await read("restarted"))?.observation ?? {};
  expect(restarting).toMatchObject({ restarted: [], missed: [] });
  expect([...(restarting?.workloads ?? [])]).toMatchObject([
    ["Deployment shop/web", { kind: "Deployment", metadata: { name: "web" } }],
  ]);
});
