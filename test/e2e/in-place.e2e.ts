/** Pods of an ordered set get a new template in place where it allows that, on a real control plane, and new ones where not. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import { DEFAULT_ORDERED_SET_GATES } from "../../shared/core/statefulset/gates.ts";
import { orderedSetInstallation } from "../../shared/install/manifests.ts";
import { type Cluster, type JsonPatchOperation, STATEFUL_SETS } from "../../shared/kube/port.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { recordPods } from "./support/pod-history.ts";
import { atMost, imageOf, isReady, Scene } from "./support/scene.ts";

const COUNT = 3;
const READS_RELEASE = [{ name: "RELEASE", valueFrom: { fieldRef: { fieldPath: "metadata.labels['release']" } } }];
let functions: StartedFunctions;
let reconciler: Cluster;
let installed: readonly KubernetesObject[] = [];
beforeAll(async () => {
  const admin = controlPlane();
  functions = await startFunctions(admin, { hasTicks: false });
  installed = orderedSetInstallation(functions.address);
  await createAll(clusterOf(admin), installed);
  reconciler = clusterOf(await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler"));
});
afterAll(async () => {
  await removeAll(clusterOf(controlPlane()), [...installed].reverse());
  await functions?.close();
});

async function pass(follow = true): Promise<void> {
  const options = { kruiseNamespace: "kruise-system", gates: DEFAULT_ORDERED_SET_GATES, follow };
  const { problems } = await runSetPass(reconciler, { ...options, deadlineMs: 60_000 });
  expect(problems).toEqual([]);
}

function factsOf(pods: readonly Pod[]) {
  const sorted = pods.toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  return {
    uids: sorted.map(({ metadata }) => metadata?.uid),
    images: sorted.map((pod) => imageOf(pod, "main")),
    releases: sorted.map(({ metadata }) => metadata?.labels?.["release"]),
    restarts: sorted.map(({ status }) => status?.containerStatuses?.[0]?.restartCount),
    ready: sorted.filter(isReady).length,
  };
}

const withImage = (value: string) =>
  ({ op: "replace", path: "/spec/template/spec/containers/0/image", value }) as const;
const three = (value: unknown) => Array(COUNT).fill(value);

/** A set whose pods are ready, and how it is patched. */
async function openSet() {
  const scene = new Scene(functions);
  onTestFinished(() => scene.close());
  await scene.createNamespace(scene.name);
  const { labels } = scene;
  const set = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "StatefulSet",
    metadata: { name: "db", namespace: scene.name },
    spec: {
      replicas: COUNT,
      serviceName: "db",
      selector: { matchLabels: labels },
      template: {
        metadata: { labels: { ...labels, release: "1" } },
        spec: {
          containers: [{ name: "main", image: "app:1", env: READS_RELEASE }],
          readinessGates: [{ conditionType: "InPlaceUpdateReady" }],
        },
      },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceIfPossible" } },
    },
  };
  await scene.cluster.create<KubernetesObject>(STATEFUL_SETS, set);
  const key = { namespace: scene.name, name: "db" };
  const patch = (...operations: readonly JsonPatchOperation[]) =>
    scene.cluster.patch(STATEFUL_SETS, key, { type: "json", operations });
  await pass();
  await scene.untilReady(COUNT);
  return { scene, patch };
}

it("a template that changes again before the first pod is done goes to the newest, in place", async () => {
  const { scene, patch } = await openSet();
  const { uids } = factsOf(await scene.pods());
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  await patch(withImage("app:2"));
  await pass(false);
  expect(factsOf(await scene.pods()).images).toEqual(["app:1", "app:1", "app:2"]);
  await patch(withImage("app:3"));
  await pass();
  const { restarts, ...facts } = factsOf(await scene.untilReady(COUNT));
  expect(facts).toEqual({ uids, images: three("app:3"), releases: three("1"), ready: COUNT });
  expect(restarts.slice(0, 2)).toEqual([1, 1]);
  const middle = (await history.versions()).filter(
    ({ object }) => imageOf(object as unknown as Pod, "main") === "app:2",
  );
  expect(new Set(middle.map(({ object }) => object.metadata.name))).toEqual(new Set(["db-2"]));
});

it("a new image and label in place, also a label that a container reads, and a new environment in new pods", async () => {
  const { scene, patch } = await openSet();
  const { uids } = factsOf(await scene.pods());
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const beganMs = performance.now();
  await patch(withImage("app:2"), { op: "replace", path: "/spec/template/metadata/labels/release", value: "2" });
  await pass();
  expect(factsOf(await scene.untilReady(COUNT))).toEqual({
    uids,
    images: three("app:2"),
    releases: three("2"),
    restarts: three(1),
    ready: COUNT,
  });
  addFigure("3 pods of an ordered set are updated in place, 1 at once, in ms", Math.round(performance.now() - beganMs));
  const down = new Set<string>();
  let most = 0;
  for (const { object } of await history.versions()) {
    if (isReady(object as unknown as Pod)) down.delete(object.metadata.name ?? "");
    else down.add(object.metadata.name ?? "");
    most = Math.max(most, down.size);
  }
  expect(most).toEqual(atMost(1));

  // Alone, a label that the container reads restarts it by another way to write its image.
  await patch({ op: "replace", path: "/spec/template/metadata/labels/release", value: "3" });
  await pass();
  expect(factsOf(await scene.untilReady(COUNT))).toEqual({
    uids,
    images: three("docker.io/library/app:2"),
    releases: three("3"),
    restarts: three(2),
    ready: COUNT,
  });

  await patch({ op: "add", path: "/spec/template/spec/containers/0/env", value: [{ name: "A", value: "b" }] });
  await pass();
  const again = factsOf(await scene.untilReady(COUNT));
  expect(again.uids.filter((uid) => uids.includes(uid))).toEqual([]);
  expect(again.restarts).toEqual(three(0));
});
