/** Tests that a rollout follows the order of built-in StatefulSets, on a real control plane. */
import { expect, it, onTestFinished } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { FOLLOW_ORDINALS_ANNOTATION } from "../../shared/api/names.ts";
import type { Resource } from "../../shared/kube/port.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { type PodHistory, recordPods } from "./support/pod-history.ts";
import { APP, imageOf, type Scene, setImage } from "./support/scene.ts";

const openScene = scenes();

const STATEFUL_SETS: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };

function createStatefulSet({ cluster, name: namespace, labels }: Scene, name: string, replicas: number) {
  const own = { ...labels, set: name };
  const template = { metadata: { labels: own }, spec: { containers: [APP] } };
  const spec = {
    replicas,
    serviceName: name,
    podManagementPolicy: "Parallel",
    selector: { matchLabels: own },
    template,
  };
  return cluster.create(STATEFUL_SETS, { metadata: { namespace, name }, spec } as KubernetesObject);
}

/** Returns the pods in the order in which they first ran this image. */
async function updatesTo(image: string, history: PodHistory): Promise<readonly (string | undefined)[]> {
  const updated = (await history.versions()).filter(
    ({ object }) => imageOf(object as unknown as Pod, "agent") === image,
  );
  return [...new Set(updated.map(({ object }) => object.metadata.name))];
}

it("pods of StatefulSets are updated set after set, highest ordinal first, one at a time", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  const annotation = FOLLOW_ORDINALS_ANNOTATION.replace("/", "~1");
  await scene.patchSet({ op: "add", path: `/metadata/annotations/${annotation}`, value: "true" });
  await createStatefulSet(scene, "cache", 2);
  await createStatefulSet(scene, "db", 3);
  await scene.untilReady(5);
  await scene.untilSettled();
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(5);
  expect(await updatesTo("agent:v2", history)).toEqual(["cache-1", "cache-0", "db-2", "db-1", "db-0"]);
  const record = await scene.record(since);
  expect(record).toMatchObject({ maxUnavailableObserved: 1, appContainerRestarts: 0, podPatches: 5 });
  addFigure("pods updated in the order of their StatefulSets", record.podPatches);
});
