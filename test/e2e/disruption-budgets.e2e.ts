/** Tests rollouts within PodDisruptionBudgets, with Kubernetes' own disruption controller and eviction API. */
import { afterEach, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { type Cluster, DISRUPTION_BUDGETS, PODS, type Resource, UNAVAILABLE_BUDGETS } from "../../shared/kube/port.ts";
import { fewestReady } from "./support/fewest-ready.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { recordPods } from "./support/pod-history.ts";
import { atMost, type Scene, setImage } from "./support/scene.ts";
import { unavailableBudgetCrd } from "./support/unavailable-budget-crd.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes({ gates: ["RespectDisruptionBudgets"], roles: ["eviction"] });

interface Budget extends KubernetesObject {
  readonly status?: {
    readonly disruptionsAllowed?: number;
    readonly currentHealthy?: number;
    readonly disruptedPods?: Readonly<Record<string, string>>;
  };
}

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** Creates a budget, and resolves after the disruption controller has counted its pods. */
async function guard(scene: Scene, name: string, spec: object, healthy: number): Promise<void> {
  const budget = { metadata: { name, namespace: scene.name }, ...{ spec } };
  await scene.cluster.create(DISRUPTION_BUDGETS, budget as KubernetesObject);
  await eventually(
    () => readBudget(scene.cluster, scene.name, name),
    ({ status }) => expect(status?.currentHealthy).toBe(healthy),
  );
}

function readBudget(cluster: Cluster, namespace: string, name: string): Promise<Budget> {
  return cluster.get<Budget>(DISRUPTION_BUDGETS, { namespace, name });
}

it("pods of a disruption budget go down no faster than it allows, and the budget forgets pods that are ready again", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  await scene.deploy(6);
  await scene.untilSettled();
  await guard(scene, "app", { selector: { matchLabels: scene.labels }, maxUnavailable: 2 }, 6);
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(6);
  const { maxUnavailableObserved, podPatches } = await scene.record(since);
  expect(maxUnavailableObserved).toStrictEqual(atMost(2));
  expect(podPatches).toBe(6);
  await scene.untilSettled();
  const { status } = await eventually(
    () => readBudget(scene.cluster, scene.name, "app"),
    (budget) => expect(budget.status?.disruptionsAllowed).toBe(2),
  );
  expect(status?.disruptedPods ?? {}).toStrictEqual({});
  addFigure("pods restarted in place within a PodDisruptionBudget", podPatches);
});

it("a budget without allowed disruptions holds its pods and is named, and other pods are updated until it allows more", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  const guarded = { ...scene.labels, app: "guarded" };
  for (const name of ["g1", "g2"]) await scene.createPod(name, {}, { labels: guarded });
  for (const name of ["o1", "o2"]) await scene.createPod(name);
  await scene.untilReady(4);
  await scene.untilSettled();
  await guard(scene, "guarded", { selector: { matchLabels: { app: "guarded" } }, minAvailable: 2 }, 2);
  await scene.patchSet(setImage("agent:v2"));
  const others = await scene.untilUpdated(2);
  expect(others.map(({ metadata }) => metadata?.name).sort()).toStrictEqual(["o1", "o2"]);
  const said = `PodDisruptionBudget ${scene.name}/guarded allows 0 more down: 2 healthy of 2 that have to be`;
  await eventually(
    () => scene.set(),
    ({ status }) =>
      expect(status?.conditions?.find(({ type }) => type === "Blocked")).toMatchObject({
        status: "True",
        reason: "HeldByDisruptionBudget",
        message: `2 pods wait for disruption budgets: ${said}`,
      }),
  );
  const body = { spec: { minAvailable: 1 } };
  const key = { namespace: scene.name, name: "guarded" };
  await scene.cluster.patch(DISRUPTION_BUDGETS, key, { type: "merge", body });
  await scene.untilUpdated(4);
});

it("two SidecarSets and a drain share one budget and never take more pods down than it allows", async () => {
  const updateStrategy = { type: "RollingUpdate", maxUnavailable: "100%" } as const;
  const scene = await openScene({ updateStrategy });
  const other = `${scene.name}-two`;
  await scene.createSet(other, {
    selector: { matchLabels: scene.labels },
    containers: [{ name: "second", image: "second:v1" }],
    updateStrategy,
  });
  await scene.deploy(6);
  await guard(scene, "app", { selector: { matchLabels: scene.labels }, minAvailable: 4 }, 6);
  const history = recordPods(scene.cluster, scene.name);
  ended.push(async () => history.close());
  await Promise.all([scene.patchSet(setImage("agent:v2")), scene.patchOther(other, setImage("second:v2"))]);
  const evicted = await drain(scene, 3);
  await scene.untilUpdated(6);
  await scene.untilUpdated(6, other);
  const fewest = await fewestReady(history, 6);
  expect(evicted).toBe(3);
  expect(fewest).toBeLessThan(6);
  expect(fewest).toBeGreaterThanOrEqual(4);
  addFigure("fewest of 6 pods ready beside two rollouts and a drain, where 4 have to be", fewest);
});

const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};

it("OpenKruise's PodUnavailableBudgets hold too if they are defined, and count the written pods", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  const { cluster } = scene;
  const definition = unavailableBudgetCrd();
  await cluster.create(DEFINITIONS, definition);
  ended.push(() => cluster.delete(DEFINITIONS, { name: definition.metadata?.name ?? "" }));
  await scene.deploy(3);
  const key = { namespace: scene.name, name: "kruise" };
  const kind = { apiVersion: "policy.kruise.io/v1alpha1", kind: "PodUnavailableBudget" };
  const budget: KubernetesObject = {
    ...kind,
    metadata: key,
    ...{ spec: { selector: { matchLabels: scene.labels }, maxUnavailable: 1 } },
  };
  const { metadata } = await eventually(
    () => cluster.create(UNAVAILABLE_BUDGETS, budget),
    () => undefined,
  );
  const allow = (unavailableAllowed: number) => {
    const status = { unavailableAllowed, currentAvailable: 3, desiredAvailable: 2, totalReplicas: 3 };
    const body = { status: { ...status, observedGeneration: metadata?.generation } };
    return cluster.patch(UNAVAILABLE_BUDGETS, key, { type: "merge", body }, { subresource: "status" });
  };
  await allow(0);
  await scene.patchSet(setImage("agent:v2"));
  const blocked = async () => (await scene.set()).status?.conditions?.find(({ type }) => type === "Blocked");
  await eventually(blocked, (found) =>
    expect(found?.message).toContain(`PodUnavailableBudget ${scene.name}/kruise allows 0 more down: 3 healthy of 2`),
  );
  await allow(1);
  const [updated] = await scene.untilUpdated(1);
  await eventually(blocked, (found) => expect(found?.status).toBe("True"));
  const { status } = (await cluster.get(UNAVAILABLE_BUDGETS, key)) as KubernetesObject & { readonly status?: object };
  const unavailablePods = { [updated?.metadata?.name ?? ""]: expect.stringMatching(/Z$/) };
  expect(status).toMatchObject({ unavailableAllowed: 0, unavailablePods });
  expect(await scene.untilUpdated(1)).toHaveLength(1);
});

/** Evicts as kubectl drain does: it asks again until the API server allows it. */
async function drain(scene: Scene, count: number): Promise<number> {
  const names = (await scene.pods()).slice(0, count).map(({ metadata }) => metadata?.name ?? "");
  for (const name of names) {
    const metadata = { name, namespace: scene.name };
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata } as KubernetesObject;
    const evict = () => scene.cluster.create(PODS, eviction, { subresource: "eviction" });
    await eventually(evict, () => undefined);
  }
  return names.length;
}
