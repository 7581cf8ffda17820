/** Tests that our definition serves ordered sets that OpenKruise stored as v1alpha1, before v1beta1 existed. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../../infra/local/cluster.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { planFromKruise } from "../../../shared/core/inspect/migrate/from-kruise.ts";
import { statefulSetCrd } from "../../../shared/install/crd/stateful-set-crd.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { type Cluster, NAMESPACES, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { FACTS, kind, URL } from "../../core/migrate/fixture.ts";
import { readPods, settle } from "./fixture.ts";

const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const KEY = { name: "statefulsets.apps.kruise.io" };
const OLD: Resource = { ...STATEFUL_SETS, version: "v1alpha1" };
const SERVICE = { namespace: "kruise-system", name: "kruise-webhook-service", path: "/convert", port: 443 };

interface Definition extends KubernetesObject {
  readonly spec: { readonly versions: readonly object[] };
}

let local: LocalCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startLocalCluster({ startDelayMs: 5, readyDelayMs: 5 });
  const { url: server, caCertificate: certificateAuthority, token } = local;
  cluster = connectCluster({ server, certificateAuthority, token: async () => token });
  for (const name of ["kruise-system", "shop"]) await cluster.create(NAMESPACES, { metadata: { name } });
  await leaveAsOpenKruise();
});
afterAll(() => local?.close());

const SPEC = {
  replicas: 2,
  serviceName: "db",
  selector: { matchLabels: { app: "db" } },
  podManagementPolicy: "OrderedReady",
  revisionHistoryLimit: 10,
  template: {
    metadata: { labels: { app: "db" } },
    spec: { containers: [{ name: "main", image: "app:1" }], readinessGates: [{ conditionType: "InPlaceUpdateReady" }] },
  },
  updateStrategy: {
    type: "RollingUpdate",
    rollingUpdate: { partition: 0, maxUnavailable: 1, podUpdatePolicy: "InPlaceIfPossible", minReadySeconds: 0 },
  },
};

/** Installs a definition that once had only v1alpha1, and that its chart has updated since. */
async function leaveAsOpenKruise(): Promise<void> {
  const { spec, ...definition } = statefulSetCrd() as Definition;
  const of = (name: string, storage: boolean) => ({ ...spec.versions.at(-1), name, storage });
  await cluster.create(DEFINITIONS, {
    ...definition,
    spec: { ...spec, versions: [of("v1alpha1", true)] },
  } as KubernetesObject);
  const metadata = { name: "db", namespace: "shop" };
  await cluster.create(OLD, {
    apiVersion: "apps.kruise.io/v1alpha1",
    kind: "StatefulSet",
    metadata,
    spec: SPEC,
  } as object);
  const webhook = { clientConfig: { service: SERVICE }, conversionReviewVersions: ["v1", "v1beta1"] };
  const versions = [of("v1alpha1", false), of("v1beta1", true)];
  await cluster.patch(DEFINITIONS, KEY, {
    type: "merge",
    body: { spec: { versions, conversion: { strategy: "Webhook", webhook } } },
  });
}

/** Returns the patch in the plan of a migration. */
function patchOfPlan(): object {
  const facts = { ...FACTS, kinds: [kind("statefulsets", "StatefulSet", 1)], setConversion: { service: SERVICE } };
  const lines = planFromKruise(facts, { url: URL }, []).steps.flatMap(({ commands }) => commands);
  const [, patch = ""] =
    /^kubectl patch crd statefulsets\.apps\.kruise\.io --type=merge -p '(.+)'$/m.exec(lines.join("\n")) ?? [];
  return JSON.parse(patch) as object;
}

it("the product's StatefulSet definition replaces OpenKruise's after the migration's patch and serves sets stored as v1alpha1", async () => {
  const { spec } = statefulSetCrd() as Definition;
  const apply = () => cluster.patch(DEFINITIONS, KEY, { type: "merge", body: { spec } });
  await expect(apply()).rejects.toMatchObject({ code: 422 });
  await cluster.patch(DEFINITIONS, KEY, { type: "merge", body: patchOfPlan() });
  await apply();
  const key = { name: "db", namespace: "shop" };
  expect(await cluster.get<StatefulSet>(STATEFUL_SETS, key)).toMatchObject({ spec: SPEC });
  expect(await cluster.get<StatefulSet>(OLD, key)).toMatchObject({ spec: SPEC });

  await settle(cluster, "db");
  expect((await readPods(cluster, "db")).map(({ metadata }) => metadata?.name)).toEqual(["db-0", "db-1"]);
});
