/** Tests that the shipped roles suffice, and that each of their rules is needed. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ConfigMap } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import { ledgerName } from "../../shared/core/ledger.ts";
import { accessObjects } from "../../shared/install/rbac/access.ts";
import { type Cluster, CONFIG_MAPS, PODS, type Resource } from "../../shared/kube/port.ts";
import { controlPlane } from "./support/access.ts";
import { readAudit } from "./support/audit.ts";
import { clusterOf } from "./support/clients.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { Scene, setImage } from "./support/scene.ts";
import { until } from "./support/until.ts";

let functions: Functions;
let cluster: Cluster;
beforeAll(async () => {
  cluster = clusterOf(controlPlane());
  functions = await startFunctions(controlPlane());
});
afterAll(() => functions?.close());

/** Returns the functions' calls that were refused so far. */
function refusals(): readonly string[] {
  return readAudit(controlPlane().auditLog)
    .filter(({ responseStatus, userAgent }) => responseStatus?.code === 403 && userAgent === "sidecarset-serverless")
    .map(({ verb, requestURI }) => `${verb} ${requestURI.replace(/\?.*/, "")}`);
}

/** Makes every kind of call that the functions make, in a few seconds. */
async function tour(scene: Scene): Promise<void> {
  await scene.open({
    customVersion: "1",
    // A selector of only the name needs no read of the namespace.
    namespaceSelector: {
      matchLabels: { "kubernetes.io/metadata.name": scene.name },
      matchExpressions: [{ key: "example.com/none", operator: "DoesNotExist" }],
    },
    patchPodMetadata: [{ annotations: { "example.com/mesh": "on" }, patchPolicy: "Retain" }],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 },
  });
  await scene.deploy(2);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(2);
  await scene.patchSet({ op: "add", path: "/spec/containers/0/env", value: [{ name: "A", value: "b" }] });
  await scene.untilSettled();
  await scene.patchSet({ op: "add", path: "/spec/injectionStrategy", value: { revision: { customVersion: "1" } } });
  await scene.createPod("one");
}

it("no call of the functions is refused", async () => {
  const before = refusals().length;
  const scene = new Scene(functions);
  await tour(scene);
  await scene.close();
  expect(refusals().slice(before)).toEqual([]);
});

it("a SidecarSet that is recreated takes over the ledger that its predecessor left without an owner", async () => {
  const before = refusals().length;
  const scene = new Scene(functions);
  const key = { namespace: KRUISE_NAMESPACE, name: ledgerName(scene.name) };
  const ledger = async () =>
    (await cluster.get<ConfigMap>(CONFIG_MAPS, key)).metadata?.ownerReferences?.map(({ uid }) => uid);
  await scene.open();
  await scene.deploy(1);
  await scene.untilSettled();
  expect(await ledger()).toEqual([(await scene.set()).metadata?.uid]);
  // The owners are removed, as after a deletion that orphans.
  await cluster.patch(CONFIG_MAPS, key, { type: "merge", body: { metadata: { ownerReferences: null } } });
  await scene.deleteSet(scene.name);
  const made = await scene.createSet(scene.name, {});
  await expect.poll(ledger).toEqual([made.metadata?.uid]);
  await scene.close();
  expect(refusals().slice(before)).toEqual([]);
});

const ROLES = accessObjects().filter(({ rules }) => rules !== undefined);
const RULES = ROLES.flatMap(({ kind, metadata, rules = [] }) =>
  rules.map(({ resources, verbs }, index) => ({ kind, role: metadata?.name ?? "", resources, verbs, index })),
);

it.each(RULES)("$kind $role needs its rule for $resources: $verbs", async ({ kind, role, index }) => {
  const before = refusals().length;
  const { rules = [], metadata } = ROLES.find((one) => one.kind === kind && one.metadata?.name === role) ?? {};
  const resource: Resource = {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    plural: kind === "Role" ? "roles" : "clusterroles",
    namespaced: kind === "Role",
  };
  const setRules = (all: typeof rules) =>
    cluster.patch(resource, { ...metadata, name: role }, { type: "merge", body: { rules: all } });
  const scene = new Scene(functions);
  await setRules(rules.toSpliced(index, 1));
  try {
    const touring = tour(scene).catch(() => undefined);
    await until("a refusal", async () => refusals().length > before, 90_000);
    await setRules(rules);
    // Pods that came without sidecars meanwhile would block the tour.
    for (const { metadata } of await scene.pods())
      await cluster.delete(PODS, { namespace: scene.name, name: metadata?.name ?? "" });
    await touring;
  } finally {
    await setRules(rules);
    await scene.close().catch(() => undefined);
  }
});
