/** Tests the history of a SidecarSet's versions, and new pods that get an older version. */
import { expect, it, onTestFinished } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import { parseUpgradeRecords } from "../../shared/core/pod/pod-records.ts";
import { CONTROLLER_REVISIONS } from "../../shared/kube/port.ts";
import { sendRaw } from "../contract/raw.ts";
import { apiServer } from "./support/access.ts";
import { scenes } from "./support/open-scene.ts";
import { imageOf, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();

const BY_ONE = { type: "RollingUpdate", maxUnavailable: 1 };
const NOT_UPDATE = { type: "NotUpdate" };

async function revisionsOf({ cluster, name }: Scene): Promise<readonly ControllerRevision[]> {
  const labelSelector = `kruise.io/sidecarset-name=${name}`;
  const { items } = await cluster.list<ControllerRevision>(CONTROLLER_REVISIONS, { labelSelector });
  return items.toSorted((a, b) => a.revision - b.revision);
}

/** Releases the next version under its own name. `injected`: the version that new pods get. */
async function release(scene: Scene, image: string, customVersion: string, injected?: object): Promise<void> {
  await scene.patchSet(
    setImage(image),
    { op: "replace", path: "/spec/customVersion", value: customVersion },
    ...(injected ? [{ op: "add", path: "/spec/injectionStrategy", value: { revision: injected } } as const] : []),
  );
  await scene.untilSettled();
}

it("every version is kept as a ControllerRevision that the SidecarSet owns and that is deleted with the SidecarSet", async () => {
  const scene = await openScene({ customVersion: "1", updateStrategy: BY_ONE });
  const { metadata } = await scene.set();
  await scene.untilSettled();
  await release(scene, "agent:v2", "2");
  const ownerReferences = [{ kind: "SidecarSet", name: scene.name, uid: metadata?.uid, controller: true }];
  const version = (customVersion: string) => {
    const labels = { "apps.kruise.io/sidecarset-custom-version": customVersion };
    return { labels, ownerReferences, namespace: "kruise-system" };
  };
  expect(await revisionsOf(scene)).toMatchObject([
    { revision: 1, metadata: version("1"), data: { spec: { $patch: "replace", containers: [{ image: "agent:v1" }] } } },
    { revision: 2, metadata: version("2"), data: { spec: { $patch: "replace", containers: [{ image: "agent:v2" }] } } },
  ]);
  await scene.deleteSet(scene.name);
  await eventually(
    () => revisionsOf(scene),
    (all) => expect(all).toEqual([]),
  );
});

it("a SidecarSet that is deleted without its dependents is gone, and leaves its revisions", async () => {
  const written = { ...SIDECAR, env: [{ name: "COMMAND", value: "a && b < c" }] };
  const scene = await openScene({ containers: [written] });
  await scene.untilSettled();
  const path = `/apis/apps.kruise.io/v1beta1/sidecarsets/${scene.name}`;
  const body = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Orphan" };
  expect((await sendRaw(apiServer(), { method: "DELETE", path, body })).code).toBe(200);
  const gone = () =>
    scene.set().then(
      () => "there",
      () => "gone",
    );
  await eventually(gone, (where) => expect(where).toBe("gone"));
  const left = await revisionsOf(scene);
  onTestFinished(async () => {
    for (const { metadata } of left)
      await scene.cluster.delete(CONTROLLER_REVISIONS, {
        namespace: metadata?.namespace ?? "",
        name: metadata?.name ?? "",
      });
  });
  expect(left.map(({ metadata }) => metadata?.ownerReferences)).toEqual([undefined]);
});

it("at most revisionHistoryLimit versions are kept, in addition to the versions that pods still run", async () => {
  const scene = await openScene({ customVersion: "1", revisionHistoryLimit: 2, updateStrategy: NOT_UPDATE });
  await scene.untilSettled();
  const pod = await scene.createPod("one");
  await scene.untilReady(1);
  for (const version of ["2", "3", "4"]) await release(scene, `agent:v${version}`, version);
  expect((await revisionsOf(scene)).map(({ revision }) => revision)).toEqual([1, 4]);
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
  expect((await revisionsOf(scene))[0]?.metadata?.name).toBe(records[scene.name]?.controllerRevision);
});

it("new pods get the revision that the injection strategy names, by custom version or by its name", async () => {
  const scene = await openScene({ customVersion: "stable", updateStrategy: NOT_UPDATE });
  await scene.untilSettled();
  await release(scene, "agent:v2", "next", { customVersion: "stable", policy: "Always" });
  expect(imageOf(await scene.createPod("one"), "agent")).toBe("agent:v1");
  const [, next] = await revisionsOf(scene);
  await release(scene, "agent:v3", "last", { revisionName: next?.metadata?.name });
  expect(imageOf(await scene.createPod("two"), "agent")).toBe("agent:v2");
  await scene.patchSet({ op: "remove", path: "/spec/injectionStrategy/revision" });
  expect(imageOf(await scene.createPod("three"), "agent")).toBe("agent:v3");
});

it("a SidecarSet that names a missing revision is refused", async () => {
  const scene = await openScene({ customVersion: "1", updateStrategy: NOT_UPDATE });
  await scene.untilSettled();
  const revision = { customVersion: "2" };
  await expect(
    scene.patchSet({ op: "add", path: "/spec/injectionStrategy", value: { revision } }),
  ).rejects.toMatchObject({ code: 422, message: expect.stringContaining("Cannot find specific ControllerRevision") });
});

it("under policy Partial only pods that the rollout has not reached get the named revision", async () => {
  const selector = { matchLabels: { ring: "canary" } };
  const scene = await openScene({ customVersion: "stable", updateStrategy: { ...BY_ONE, selector } });
  await scene.untilSettled();
  await release(scene, "agent:v2", "next", { customVersion: "stable", policy: "Partial" });
  const canary = await scene.createPod("one", {}, { labels: { ...scene.labels, ring: "canary" } });
  expect(imageOf(canary, "agent")).toBe("agent:v2");
  expect(imageOf(await scene.createPod("two"), "agent")).toBe("agent:v1");
  await scene.untilReady(2);

  const byPartition = (partition: string) =>
    scene.patchSet({ op: "replace", path: "/spec/updateStrategy", value: { ...BY_ONE, partition } });
  await byPartition("100%");
  expect(imageOf(await scene.createPod("three"), "agent")).toBe("agent:v1");
  await byPartition("0%");
  expect(imageOf(await scene.createPod("four"), "agent")).toBe("agent:v2");
  await scene.untilUpdated(4);
});

it("a canary replaces its base in the pods that it selects, and the base waits until the canary is gone", async () => {
  const scene = await openScene({ updateStrategy: BY_ONE });
  const canary = `${scene.name}-canary`;
  const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": scene.name };
  const spec = {
    selector: { matchLabels: { ring: "canary" } },
    containers: [{ ...SIDECAR, image: "agent:v2" }],
    updateStrategy: NOT_UPDATE,
  };
  await scene.createSet(canary, spec, { annotations });
  const one = await scene.createPod("one", {}, { labels: { ...scene.labels, ring: "canary" } });
  const two = await scene.createPod("two");
  expect([one, two].map((pod) => imageOf(pod, "agent"))).toEqual(["agent:v2", "agent:v1"]);
  const listed = [one, two].map(({ metadata }) => metadata?.annotations?.[INJECTED_LIST_ANNOTATION]);
  expect(listed).toEqual([canary, scene.name]);
  await scene.untilReady(2);
  const message = expect.stringContaining(`container agent already exist in ${canary}`);
  await expect(scene.patchSet(setImage("agent:v3"))).rejects.toMatchObject({ code: 422, message });
  await scene.deleteSet(canary);
  await scene.patchSet(setImage("agent:v3"));
  await scene.untilUpdated(1);
  await scene.untilSettled();
  expect((await scene.pods()).map((pod) => imageOf(pod, "agent"))).toEqual(["agent:v2", "agent:v3"]);
});
