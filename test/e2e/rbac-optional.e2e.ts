/** Tests that each optional role grants exactly its own rights when it is applied alone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { statefulSetCrd } from "../../shared/install/crd/stateful-set-crd.ts";
import { containerRecreateRequestCrd } from "../../shared/install/manifests.ts";
import { optionalAccess } from "../../shared/install/rbac/optional-access.ts";
import {
  BUILT_IN_STATEFUL_SETS,
  type Cluster,
  DAEMON_SETS,
  DEPLOYMENTS,
  DISRUPTION_BUDGETS,
  REPLICA_SETS,
  type Resource,
  SIDECARSETS,
  UNAVAILABLE_BUDGETS,
} from "../../shared/kube/port.ts";
import { type RawTarget, sendRaw } from "../contract/raw.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import {
  belongTo,
  EXPECTATIONS,
  type Expectation,
  knowOwner,
  METHODS,
  POD_SPEC,
  type Request,
} from "./support/optional-requests.ts";
import { storeObjects } from "./support/stored-objects.ts";
import { unavailableBudgetCrd } from "./support/unavailable-budget-crd.ts";
import { until } from "./support/until.ts";

const resource = (group: string, version: string, plural: string, namespaced = false): Resource => ({
  group,
  version,
  plural,
  namespaced,
});
const DEFINITIONS = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
const ORDERED_SETS = resource("apps.kruise.io", "v1beta1", "statefulsets", true);
const CLASSES = resource("storage.k8s.io", "v1", "storageclasses");
const ALL_PODS = resource("", "v1", "pods", true);

const RECREATE_REQUEST = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "ContainerRecreateRequest",
  metadata: { name: "again", namespace: "default" },
  spec: { podName: "kept", containers: [{ name: "main" }] },
};

/** A SidecarSet that selects no pods. */
const UNDONE: SidecarSet = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "undone", annotations: { "sidecarset.kruise.io/undo-on-halt": "true" } },
  spec: {
    selector: { matchLabels: { "example.com/undone": "none" } },
    containers: [{ name: "agent", image: "agent:v1" }],
  },
};

let functions: Functions;
let cluster: Cluster;
const accounts = new Map<string | undefined, RawTarget>();
const WORKLOADS = [DEPLOYMENTS, BUILT_IN_STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS];

beforeAll(async () => {
  const admin = controlPlane();
  functions = await startFunctions(admin, { hasTicks: false });
  cluster = clusterOf(admin);
  accounts.set(undefined, await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler"));
  accounts.set("sidecarset-webhooks", await asServiceAccount(admin, "kruise-system", "sidecarset-webhooks"));
  await cluster.create(DEFINITIONS, statefulSetCrd());
  await cluster.create(DEFINITIONS, containerRecreateRequestCrd());
  await cluster.create(DEFINITIONS, unavailableBudgetCrd());
  const set = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };
  const spec = { selector: {}, template: {} };
  const create = () =>
    cluster.create(ORDERED_SETS, { ...set, metadata: { name: "db", namespace: "default" }, ...{ spec } });
  await until("ordered sets are served", async () => Boolean(await create()));
  await storeObjects(admin.etcdUrl, [RECREATE_REQUEST]);
  await cluster.create(CLASSES, { metadata: { name: "standard" }, ...{ provisioner: "example.com/none" } });
  const { metadata } = await cluster.get<KubernetesObject>(ORDERED_SETS, { namespace: "default", name: "db" });
  belongTo({ ...set, name: "db", uid: metadata?.uid, controller: true, blockOwnerDeletion: true });
  await cluster.create(DISRUPTION_BUDGETS, { metadata: { name: "one", namespace: "default" }, ...{ spec: {} } });
  const kruise = { apiVersion: "policy.kruise.io/v1alpha1", kind: "PodUnavailableBudget" };
  const budget = { ...kruise, metadata: { name: "one", namespace: "default" }, ...{ spec: {} } };
  await until("unavailable budgets are served", async () => Boolean(await cluster.create(UNAVAILABLE_BUDGETS, budget)));
  const { apiVersion = "", kind = "" } = UNDONE;
  knowOwner({ apiVersion, kind }, await cluster.create(SIDECARSETS, UNDONE));
  for (const workload of WORKLOADS) {
    const labels = { app: workload.plural };
    const template = { metadata: { labels }, spec: { ...POD_SPEC, nodeSelector: { "example.com/none": "none" } } };
    const scaled = workload === DAEMON_SETS ? {} : { replicas: 0 };
    const spec = { ...scaled, selector: { matchLabels: labels }, template };
    await cluster.create(workload, { metadata: { name: "one", namespace: "default" }, ...{ spec } });
  }
  for (const name of ["prey", "kept"]) {
    const pod = { metadata: { name, namespace: "default" }, spec: POD_SPEC };
    knowOwner({ apiVersion: "v1", kind: "Pod" }, await cluster.create<KubernetesObject>(ALL_PODS, pod));
  }
});
afterAll(async () => {
  for (const name of ["prey", "kept"])
    await cluster.delete(ALL_PODS, { namespace: "default", name }).catch(() => undefined);
  await cluster?.delete(SIDECARSETS, { name: "undone" }).catch(() => undefined);
  for (const workload of WORKLOADS)
    await cluster?.delete(workload, { namespace: "default", name: "one" }).catch(() => undefined);
  await cluster?.delete(DEFINITIONS, { name: statefulSetCrd().metadata?.name ?? "" });
  await cluster?.delete(DEFINITIONS, { name: containerRecreateRequestCrd().metadata?.name ?? "" });
  await cluster?.delete(DEFINITIONS, { name: unavailableBudgetCrd().metadata?.name ?? "" });
  await cluster?.delete(CLASSES, { name: "standard" });
  await functions?.close();
});

async function codeOf({ account, verb, path, body }: Request): Promise<number> {
  const headers = verb === "patch" ? { headers: { "content-type": "application/merge-patch+json" } } : {};
  const answer = await sendRaw(accounts.get(account) as RawTarget, {
    method: METHODS[verb] ?? verb,
    path,
    ...headers,
    ...(body ? { body } : {}),
  });
  return answer.code;
}

const saying = async (request: Request) => `${request.verb} ${request.path} ${await codeOf(request)}`;
/** Waits until the roles are in force. They come into force one by one, and refused calls have no effect meanwhile. */
async function sayingInForce(request: Request): Promise<string> {
  const lines: string[] = [];
  await until(`${request.verb} ${request.path} is permitted`, async () => {
    lines.push(await saying(request));
    return !isForbidden(lines.at(-1) ?? "");
  });
  return lines.at(-1) ?? "";
}

const isOk = (line: string) => / 2\d\d$/.test(line);
const isForbidden = (line: string) => line.endsWith(" 403");

describe.each(optionalAccess())("$feature", ({ feature, objects }) => {
  const { permits, forbids, fenced = [] } = EXPECTATIONS[feature] as Expectation;
  const applied = async (work: () => Promise<void>) => {
    await createAll(cluster, objects);
    try {
      await work();
    } finally {
      await removeAll(cluster, objects);
    }
  };

  it("this test has a request for each verb and name that each role permits", () => {
    const verbs = objects.flatMap(({ rules = [] }) =>
      // Other components check these rights. An admission plugin checks the right to finalizers when owners are set.
      // The fence checks the right to features.
      rules.flatMap(({ resources, verbs: all, resourceNames = ["any"] }) =>
        ["statefulsets/finalizers", "features"].some((one) => resources.includes(one))
          ? []
          : resources.flatMap(() => resourceNames.flatMap(() => all)),
      ),
    );
    expect([...permits, ...fenced].map(({ verb }) => verb).toSorted()).toEqual(verbs.toSorted());
  });

  it("the request is not permitted without its role", async () => {
    await until("no role is in force", async () => (await codeOf(permits[0] as Request)) === 403);
    const answers: string[] = [];
    for (const request of permits) answers.push(await saying(request));
    expect(answers.filter((line) => !isForbidden(line))).toEqual([]);
    addFigure("requests answered 403 without their optional role", answers.length);
  });

  it("the request is permitted with its role, and nothing else is", async () => {
    await applied(async () => {
      const allowed: string[] = [];
      for (const request of permits) allowed.push(await sayingInForce(request));
      const denied: string[] = [];
      for (const request of [...forbids, ...fenced]) denied.push(await saying(request));
      expect(allowed.filter((line) => !isOk(line))).toEqual([]);
      expect(denied.filter((line) => !isForbidden(line))).toEqual([]);
      addFigure("requests permitted by optional roles", allowed.length);
      addFigure("requests forbidden beside optional roles", denied.length);
    });
  });
});
