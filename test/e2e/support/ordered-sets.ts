/**
 * Sets up a file of scenarios with ordered sets: the webhooks while the file runs, and passes when a test asks for one.
 */
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { runSetPass } from "../../../shared/controller/statefulset/pass.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { statefulSetInstallation } from "../../../shared/install/manifests.ts";
import { type Cluster, type JsonPatchOperation, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { controlPlane } from "./access.ts";
import { asServiceAccount, clusterOf } from "./clients.ts";
import { type StartedFunctions, startFunctions } from "./functions.ts";
import { createAll, removeAll } from "./installed.ts";
import { Scene } from "./scene.ts";

interface OpenedSet {
  readonly scene: Scene;
  patch(...operations: readonly JsonPatchOperation[]): Promise<KubernetesObject>;
}

export interface StatefulSetsOnServer {
  /** Runs a pass over all sets with the role that we ship. `follow` false: it looks once. */
  pass(follow?: boolean): Promise<void>;
  /**
   * Opens a scene with the set `db` of this spec, and resolves when its pods are ready. The template has the scene's
   * labels.
   */
  open(spec: {
    readonly replicas: number;
    readonly template: Template;
    readonly [field: string]: unknown;
  }): Promise<OpenedSet>;
}

interface Template {
  readonly metadata?: { readonly labels?: object };
  readonly spec: object;
}

/** Must be called once in a file, outside of tests. */
export function orderedSets(): StatefulSetsOnServer {
  let functions: StartedFunctions;
  let reconciler: Cluster;
  let installed: readonly KubernetesObject[] = [];
  beforeAll(async () => {
    const admin = controlPlane();
    functions = await startFunctions(admin, { hasTicks: false });
    installed = statefulSetInstallation(functions.address);
    await createAll(clusterOf(admin), installed);
    reconciler = clusterOf(await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler"));
  });
  afterAll(async () => {
    await removeAll(clusterOf(controlPlane()), [...installed].reverse());
    await functions?.close();
  });

  const pass = async (follow = true) => {
    const options = { kruiseNamespace: "kruise-system", gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, follow };
    const { problems } = await runSetPass(reconciler, { ...options, deadlineMs: 60_000 });
    expect(problems).toEqual([]);
  };
  const open: StatefulSetsOnServer["open"] = async ({ template, ...spec }) => {
    const scene = new Scene(functions);
    onTestFinished(() => scene.close());
    await scene.createNamespace(scene.name);
    const { labels } = scene;
    await scene.cluster.create<KubernetesObject>(STATEFUL_SETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "StatefulSet",
      metadata: { name: "db", namespace: scene.name },
      spec: {
        serviceName: "db",
        selector: { matchLabels: labels },
        template: { ...template, metadata: { labels: { ...labels, ...template.metadata?.labels } } },
        ...spec,
      },
    } as KubernetesObject);
    const key = { namespace: scene.name, name: "db" };
    await pass();
    await scene.untilReady(spec.replicas);
    return { scene, patch: (...operations) => scene.cluster.patch(STATEFUL_SETS, key, { type: "json", operations }) };
  };
  return { pass, open };
}
