/** Restarts workloads whose pods cannot be updated in place, through Kubernetes' own controllers and strategies. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { CONTROL_PLANE_LABEL } from "../../shared/api/names.ts";
import {
  BUILT_IN_STATEFUL_SETS,
  DEPLOYMENTS,
  type JsonPatchOperation,
  NAMESPACES,
  PODS,
  type Resource,
} from "../../shared/kube/port.ts";
import { controlPlane } from "./support/access.ts";
import { readAudit } from "./support/audit.ts";
import { fewestReady } from "./support/fewest-ready.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { recordPods } from "./support/pod-history.ts";
import { APP, type Scene } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes({ roles: ["restart"] });

const BINDINGS: Resource = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "clusterrolebindings",
  namespaced: false,
};
const RESTARTED: JsonPatchOperation = {
  op: "add",
  path: "/metadata/annotations/sidecarset.kruise.io~1replace",
  value: "NotUpgradable,Restart",
};
const CHANGE: JsonPatchOperation = {
  op: "add",
  path: "/spec/containers/0/env",
  value: [{ name: "LEVEL", value: "debug" }],
};

const conditionOf = async (scene: Scene, type: string) =>
  (await scene.set()).status?.conditions?.find((condition) => condition.type === type);

/** Deploys a second Deployment beside `app`; both have their own rolling updates. */
async function deployBoth(scene: Scene): Promise<readonly Pod[]> {
  const labels = { ...scene.labels, own: "db" };
  const template = { metadata: { labels }, spec: { containers: [APP] } };
  const spec = { serviceName: "db", replicas: 2, selector: { matchLabels: { own: "db" } }, template };
  const metadata = { namespace: scene.name, name: "db" };
  await scene.cluster.create(BUILT_IN_STATEFUL_SETS, { metadata, ...{ spec } } as KubernetesObject);
  await scene.untilReady(2);
  await scene.cluster.create(DEPLOYMENTS, {
    metadata: { namespace: scene.name, name: "app" },
    spec: {
      replicas: 4,
      selector: { matchLabels: { own: "app" } },
      template: { metadata: { labels: { ...scene.labels, own: "app" } }, spec: { containers: [APP] } },
    },
  } as KubernetesObject);
  return await scene.untilReady(6);
}

/** Returns how often passes patched templates in the namespace. */
function restartsIn(namespace: string): number {
  return readAudit(controlPlane().auditLog).filter(
    ({ verb, objectRef, responseStatus, user }) =>
      verb === "patch" &&
      objectRef?.namespace === namespace &&
      ["deployments", "statefulsets"].includes(objectRef.resource) &&
      user.username.includes("sidecarset-reconciler") &&
      responseStatus?.code === 200,
  ).length;
}

it("a Deployment and a StatefulSet are restarted, one after the other, each once", async () => {
  const scene = await openScene();
  await deployBoth(scene);
  await scene.untilSettled();
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const beganAt = performance.now();
  await scene.patchSet(RESTARTED, CHANGE);
  const pods = await scene.untilUpdated(6);
  addFigure("seconds until two restarted workloads were updated", Math.round((performance.now() - beganAt) / 1_000));
  expect(pods.every(({ spec }) => spec.containers.some(({ env }) => env?.[0]?.value === "debug"))).toBe(true);
  expect(await fewestReady(history, 6)).toBeGreaterThanOrEqual(5);
  await scene.untilSettled();
  expect(restartsIn(scene.name)).toBe(2);
  expect((await scene.report())?.tally).not.toHaveProperty("replaced");
});

it("without the right no workload is restarted and the condition names the role, and with the right workloads are restarted", async () => {
  const scene = await openScene();
  await deployBoth(scene);
  await scene.untilSettled();
  const name = "sidecarset-reconciler-restart";
  const binding = await scene.cluster.get(BINDINGS, { name });
  await scene.cluster.delete(BINDINGS, { name });
  const { resourceVersion: _, uid: _own, ...metadata } = binding.metadata ?? {};
  const bind = () => scene.cluster.create(BINDINGS, { ...binding, metadata }).catch(() => undefined);
  onTestFinished(async () => void (await bind()));
  await scene.patchSet(RESTARTED, CHANGE);
  await eventually(
    () => conditionOf(scene, "Blocked"),
    (blocked) =>
      expect(blocked).toMatchObject({
        status: "True",
        reason: "RestartHeld",
        message: expect.stringContaining("infra/rbac/optional/restart.yaml"),
      }),
  );
  expect(restartsIn(scene.name)).toBe(0);
  await bind();
  await scene.untilUpdated(6);
  expect(restartsIn(scene.name)).toBe(2);
});

/**
 * Waits until the API server has seen a namespace's labels: it sees them with a delay, and a workload is restarted only
 * once.
 */
async function untilInjected(scene: Scene, isInjected: boolean): Promise<void> {
  const probe = {
    metadata: { namespace: scene.name, name: "probe", labels: scene.labels },
    spec: { containers: [APP] },
  };
  await eventually(
    () => scene.cluster.create<Pod>(PODS, probe, { dryRun: true }),
    ({ spec }) => expect(spec.containers.length > 1).toBe(isInjected),
  );
}

it("workloads whose pods missed their sidecars are restarted by a share of maxUnavailable, even if no pod has sidecars", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "10%" } });
  const isExcluded = (label: string | null) =>
    scene.cluster.patch(
      NAMESPACES,
      { name: scene.name },
      { type: "merge", body: { metadata: { labels: { [CONTROL_PLANE_LABEL]: label } } } },
    );
  // A pod that was created in the same second as the SidecarSet may be older than the SidecarSet.
  await sleep(1_100);
  // The API server does not send these pods to the webhook.
  await isExcluded("other");
  await untilInjected(scene, false);
  const pods = await deployBoth(scene);
  expect(pods.filter(({ spec }) => spec.containers.length > 1)).toHaveLength(0);
  await isExcluded(null);
  await untilInjected(scene, true);
  await scene.patchSet({ ...RESTARTED, value: "Missed, Restart" });
  await scene.untilUpdated(6);
  await scene.untilSettled();
  expect(restartsIn(scene.name)).toBe(2);
});
