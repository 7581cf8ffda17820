/** Tests a rollout as a user sees it whose rights cover only one namespace. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { readWithin } from "../../shared/controller/rollout/read-observation.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NOTHING_RESERVED } from "../../shared/core/rollout/select/reserved.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { deploy, injectedPod, KRUISE_NAMESPACE, readSet, startTestCluster, type TestCluster } from "./fixture.ts";

const OTHERS = ["pods of other namespaces", "the ledger of reservations"];

let local: TestCluster;
let cluster: Cluster;
let owner: object;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
  await cluster.create(NAMESPACES, { metadata: { name: "team" } });
  await deploy(cluster, "proxy", 1, {});
  const own = injectedPod("proxy", "own");
  const { metadata } = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: { name: "owner", namespace: "team" } });
  const ownerReference = {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "owner",
    uid: metadata?.uid ?? "",
    controller: true,
  };
  owner = ownerReference;
  const place = { namespace: "team", ownerReferences: [ownerReference] };
  await cluster.create<Pod>(PODS, { ...own, metadata: { ...own.metadata, ...place } });
  const options = { kruiseNamespace: KRUISE_NAMESPACE, deadlineMs: 10_000, settings: DEFAULT_ROLLOUT_SETTINGS };
  await runPass(cluster, { ...options, follow: false, sidecarSet: "proxy" });
});
afterAll(() => local?.close());

async function read({ through = cluster, RespectDisruptionBudgets = false } = {}) {
  const settings = { ...DEFAULT_ROLLOUT_SETTINGS, RespectDisruptionBudgets };
  const clock = { ...systemClock, epochMs: () => Date.parse("2026-11-27T12:00:00Z") };
  const { spec, ...stored } = await readSet(cluster, "proxy");
  const sidecarSet = { ...stored, spec: { ...spec, namespaceSelector: { matchLabels: { team: "none-has-this" } } } };
  const context = { cluster: through, clock, kruiseNamespace: KRUISE_NAMESPACE, settings };
  return { sidecarSet, settings, ...(await readWithin(context, sidecarSet, "team")) };
}

it("readWithin returns the namespace's pods with their owners and the revisions, and names the unread parts", async () => {
  const { sidecarSet, settings, observation, context, unread } = await read();
  const { pods, revisions, reserved, ...rest } = observation;
  expect(pods.map(({ metadata }) => [metadata?.namespace, metadata?.name])).toEqual([["team", "own"]]);
  expect(pods[0]?.metadata?.ownerReferences).toMatchObject([owner]);
  expect(revisions).toMatchObject([{ metadata: { namespace: KRUISE_NAMESPACE }, revision: 1 }]);
  expect(reserved).toEqual(NOTHING_RESERVED);
  expect(rest).toEqual({
    sidecarSet,
    taken: [],
    checks: [],
    kubelets: new Map(),
    isResizeServed: false,
    namespaceLabels: new Map(),
    disruptionBudgets: [],
  });
  expect(context).toEqual({ now: "2026-11-27T12:00:00Z", kruiseNamespace: KRUISE_NAMESPACE, settings });
  expect(unread).toEqual(OTHERS);
});

it("readWithin names disruption budgets as unread when the gate respects them", async () => {
  expect((await read({ RespectDisruptionBudgets: true })).unread).toEqual([...OTHERS, "disruption budgets"]);
});

it("readWithin names revisions as unread when listing them is forbidden", async () => {
  const list: Cluster["list"] = (resource, options) =>
    resource.plural === "controllerrevisions"
      ? Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }))
      : cluster.list(resource, options);
  const { observation, unread } = await read({ through: { ...cluster, list } });
  expect([observation.revisions, observation.pods.length]).toEqual([[], 1]);
  expect(unread).toEqual([...OTHERS, "revisions in kruise-system"]);
});
