/**
 * Tests that pods are replaced if they cannot be updated in place, with Kubernetes' own eviction API and controllers.
 */
import { afterEach, expect, it, vi } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import { DISRUPTION_BUDGETS, type JsonPatchOperation, type Resource } from "../../shared/kube/port.ts";
import { controlPlane } from "./support/access.ts";
import { readAudit } from "./support/audit.ts";
import { fewestReady } from "./support/fewest-ready.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { recordPods } from "./support/pod-history.ts";
import { type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { size } from "./support/size.ts";
import { eventually } from "./support/until.ts";

const PODS = size({ ci: 60, soak: 1_000 });
vi.setConfig({ testTimeout: size({ ci: 180_000, soak: 1_800_000 }) });
const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };

const openScene = scenes({ roles: ["eviction"] });

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

const REPLACED: JsonPatchOperation = {
  op: "add",
  path: "/metadata/annotations/sidecarset.kruise.io~1replace",
  value: "NotUpgradable",
};
const CACHE = { name: "cache", emptyDir: {} };
/** Changes: an environment variable, a new container, and the removal of a volume. */
const CHANGES: readonly JsonPatchOperation[] = [
  { op: "add", path: "/spec/containers/0/env", value: [{ name: "LEVEL", value: "debug" }] },
  { op: "add", path: "/spec/containers/-", value: { name: "second", image: "second:v1" } },
  { op: "remove", path: "/spec/volumes" },
];

const conditionOf = async (scene: Scene, type: string) =>
  (await scene.set()).status?.conditions?.find((condition) => condition.type === type);

function evictionsOf(namespace: string): number {
  return readAudit(controlPlane().auditLog).filter(
    ({ verb, objectRef, responseStatus }) =>
      verb === "create" &&
      objectRef?.subresource === "eviction" &&
      objectRef.namespace === namespace &&
      responseStatus?.code === 201,
  ).length;
}

it(`a change of env, a new container and a removed volume reach ${PODS} pods, within the budget`, async () => {
  const maxUnavailable = "10%";
  const scene = await openScene({ volumes: [CACHE], updateStrategy: { type: "RollingUpdate", maxUnavailable } });
  await scene.deploy(PODS);
  await scene.untilSettled();
  const before = new Set((await scene.pods()).map(({ metadata }) => metadata?.uid));
  const history = recordPods(scene.cluster, scene.name);
  ended.push(() => history.close());
  const beganAt = performance.now();
  const { metadata } = await scene.patchSet(REPLACED, ...CHANGES);
  // Pods are not listed during the wait: webhooks, passes and this test are one process.
  await eventually(
    () => scene.set(),
    ({ status }) =>
      expect(status).toMatchObject({
        observedGeneration: metadata?.generation,
        matchedPods: PODS,
        updatedPods: PODS,
        updatedReadyPods: PODS,
      }),
  );
  const seconds = (performance.now() - beganAt) / 1_000;
  const pods = await scene.untilUpdated(PODS);
  const fewest = await fewestReady(history, PODS);
  expect(fewest).toBeGreaterThanOrEqual(PODS - Math.ceil(PODS / 10));
  expect(fewest).toBeLessThan(PODS);
  expect(pods.filter(({ metadata }) => before.has(metadata?.uid))).toHaveLength(0);
  expect(pods.filter(isAsChanged)).toHaveLength(PODS);
  expect(evictionsOf(scene.name)).toBe(PODS);
  await scene.untilSettled();
  expect(await conditionOf(scene, "NotUpgradable")).toMatchObject({ status: "False", reason: "AllUpgradable" });
  addFigure("pods replaced by evictions", PODS);
  addFigure("of them ready at the worst moment", fewest);
  addFigure("seconds that it took", Math.round(seconds));
  addFigure("seconds of kubectl rollout restart at the same share", Math.round(await secondsOfRestart(scene)));
});

function isAsChanged({ spec }: Pod): boolean {
  const agent = spec.containers.find(({ name }) => name === SIDECAR.name);
  const hasCache = (spec.volumes ?? []).some(({ name }) => name === CACHE.name);
  return agent?.env?.[0]?.value === "debug" && spec.containers.some(({ name }) => name === "second") && !hasCache;
}

/** Measures the alternative without the product: the Deployment's own rolling update with the same budget. */
async function secondsOfRestart({ cluster, name }: Scene): Promise<number> {
  const rollingUpdate = { maxUnavailable: "10%", maxSurge: 0 };
  const template = { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() } } };
  const body = { spec: { strategy: { type: "RollingUpdate", rollingUpdate }, template } };
  const beganAt = performance.now();
  const key = { namespace: name, name: "app" };
  const { metadata } = await cluster.patch(DEPLOYMENTS, key, { type: "merge", body });
  await eventually(
    () => cluster.get<KubernetesObject & { readonly status?: object }>(DEPLOYMENTS, key),
    ({ status }) =>
      expect(status).toMatchObject({
        observedGeneration: metadata?.generation,
        updatedReplicas: PODS,
        readyReplicas: PODS,
        replicas: PODS,
      }),
  );
  return (performance.now() - beganAt) / 1_000;
}

it("pods that can be updated in place are not evicted", async () => {
  const scene = await openScene();
  await scene.deploy(3);
  await scene.untilSettled();
  await scene.patchSet(REPLACED, setImage("agent:v2"));
  await scene.untilUpdated(3);
  expect(evictionsOf(scene.name)).toBe(0);
});

it("a rollout waits for a PodDisruptionBudget that allows no disruption, and names it as the reason", async () => {
  const scene = await openScene();
  await scene.deploy(2);
  await scene.untilSettled();
  const key = { namespace: scene.name, name: "app" };
  const budget = { metadata: key, ...{ spec: { selector: { matchLabels: scene.labels }, minAvailable: 2 } } };
  await scene.cluster.create(DISRUPTION_BUDGETS, budget as KubernetesObject);
  await eventually(
    () => scene.cluster.get<KubernetesObject & { readonly status?: object }>(DISRUPTION_BUDGETS, key),
    ({ status }) => expect(status).toMatchObject({ currentHealthy: 2 }),
  );
  await scene.patchSet(REPLACED, ...CHANGES.slice(0, 1));
  await eventually(
    () => conditionOf(scene, "Blocked"),
    (blocked) => expect(blocked).toMatchObject({ status: "True", reason: "EvictionRefused" }),
  );
  expect(await scene.updated()).toHaveLength(0);
  await scene.cluster.patch(DISRUPTION_BUDGETS, key, { type: "merge", body: { spec: { minAvailable: 1 } } });
  await scene.untilUpdated(2);
  expect(evictionsOf(scene.name)).toBe(2);
});

it("pods without a controller that recreates them stay, and the condition counts them", async () => {
  const scene = await openScene();
  await scene.createPod("bare");
  await scene.untilReady(1);
  await scene.untilSettled();
  await scene.patchSet(REPLACED, ...CHANGES.slice(0, 1));
  await scene.untilSettled();
  expect(await conditionOf(scene, "NotUpgradable")).toMatchObject({ status: "True" });
  expect((await scene.pods()).map(({ metadata }) => metadata?.name)).toStrictEqual(["bare"]);
  expect(evictionsOf(scene.name)).toBe(0);
  expect((await scene.set()).metadata?.annotations?.[REPLACE_ANNOTATION]).toBe("NotUpgradable");
});

it("while injection is paused no pod is evicted, because new pods would have no sidecars", async () => {
  const scene = await openScene();
  await scene.deploy(2);
  await scene.untilSettled();
  await scene.patchSet(REPLACED, ...CHANGES.slice(0, 1), {
    op: "add",
    path: "/spec/injectionStrategy",
    value: { paused: true },
  });
  await eventually(
    () => conditionOf(scene, "NotUpgradable"),
    (condition) =>
      expect(condition).toMatchObject({
        status: "True",
        reason: "NotReplaced",
        message: expect.stringContaining("injection is paused"),
      }),
  );
  expect(evictionsOf(scene.name)).toBe(0);
});
