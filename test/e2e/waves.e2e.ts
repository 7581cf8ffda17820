/**
 * Tests waves on a real control plane: namespaces get a release one after the other. Production follows after dev has
 * been stable.
 */
import { expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import { parseUpgradeRecords } from "../../shared/core/pod/pod-records.ts";
import type { JsonPatchOperation, Resource } from "../../shared/kube/port.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { APP, imageOf, isReady, type Scene, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
const SOAK_SECONDS = 5;
const PODS_OF_A_WAVE = 3;

const openScene = scenes();

async function deployTo(scene: Scene, stage: string): Promise<string> {
  const namespace = `${scene.name}-${stage}`;
  await scene.createNamespace(namespace, { stage, scene: scene.name });
  const template = { metadata: { labels: scene.labels }, spec: { containers: [APP] } };
  await scene.cluster.create(DEPLOYMENTS, {
    metadata: { name: "app", namespace },
    spec: { replicas: PODS_OF_A_WAVE, selector: { matchLabels: scene.labels }, template },
  } as KubernetesObject);
  await scene.untilReady(PODS_OF_A_WAVE, namespace);
  return namespace;
}

function waves(scene: Scene, dev: object): JsonPatchOperation {
  const of = (stage: string) => ({ name: stage, namespaceSelector: { matchLabels: { stage, scene: scene.name } } });
  const value = JSON.stringify([{ ...of("dev"), soakSeconds: SOAK_SECONDS, ...dev }, of("production")]);
  return { op: "add", path: `/metadata/annotations/${WAVES_ANNOTATION.replace("/", "~1")}`, value };
}

const images = (pods: readonly Pod[]) => pods.map((pod) => imageOf(pod, "agent"));

/** Returns the time of a pass' write to the pod in milliseconds, of whole seconds. */
function updatedAt({ metadata }: Pod, set: string): number {
  const { records } = parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]);
  return Date.parse(records[set]?.updateTimestamp ?? "");
}

it("production waits until dev is not paused and has soaked, and does not wait for later changes of dev", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  const [dev, production] = [await deployTo(scene, "dev"), await deployTo(scene, "production")];
  await scene.untilSettled();

  await scene.patchSet(waves(scene, { paused: true }), setImage("agent:v2"));
  await scene.untilUpdated(PODS_OF_A_WAVE, scene.name, dev);
  await eventually(
    async () => (await scene.set()).status?.conditions?.find(({ type }) => type === "Progressing"),
    (condition) => expect(condition).toMatchObject({ reason: "WavePaused" }),
  );
  expect(images(await scene.pods(production))).toEqual(["agent:v1", "agent:v1", "agent:v1"]);

  await scene.patchSet(waves(scene, {}));
  const updated = await scene.untilUpdated(PODS_OF_A_WAVE, scene.name, production);
  expect(images(updated)).toEqual(["agent:v2", "agent:v2", "agent:v2"]);
  const { status } = await scene.set();
  const [first] = status?.waves?.list ?? [];
  expect(first).toMatchObject({ name: "dev", pods: PODS_OF_A_WAVE, updated: PODS_OF_A_WAVE });
  const [complete, passed] = [Date.parse(first?.completeSince ?? ""), Date.parse(first?.passedAt ?? "")];
  expect(passed - complete).toBeGreaterThanOrEqual(1_000 * SOAK_SECONDS);
  for (const pod of updated) expect(updatedAt(pod, scene.name)).toBeGreaterThanOrEqual(passed);
  addFigure("seconds from the end of a wave to the next, of 5 asked for", (passed - complete) / 1_000);
});

it("another release begins with the first wave, even if all waves were passed", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } });
  const [dev, production] = [await deployTo(scene, "dev"), await deployTo(scene, "production")];
  await scene.untilSettled();
  await scene.patchSet(waves(scene, { soakSeconds: 0 }), setImage("agent:v2"));
  await scene.untilUpdated(PODS_OF_A_WAVE, scene.name, production);

  await scene.patchSet(setImage("agent:does-not-exist"));
  await eventually(
    () => scene.pods(dev),
    (pods) => {
      expect(images(pods)).toEqual(pods.map(() => "agent:does-not-exist"));
      expect(pods.filter(isReady)).toEqual([]);
    },
  );
  await scene.untilToldThat(/dev/);
  expect(images(await scene.pods(production))).toEqual(["agent:v2", "agent:v2", "agent:v2"]);
});
