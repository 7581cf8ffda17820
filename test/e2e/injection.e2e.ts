/** Tests a created pod's sidecars, and that a real API server accepts the pod. */
import { describe, expect, it } from "vitest";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import { runsPods } from "./support/access.ts";
import { FORMS } from "./support/injection-forms.ts";
import { scenes } from "./support/open-scene.ts";
import { SIDECAR } from "./support/scene.ts";

const openScene = scenes();

describe("a created pod gets the sidecar with", () => {
  it.each(Object.entries(FORMS))("%s", async (_what, { set, pod, metadata, spec, runs = true }) => {
    const scene = await openScene(set);
    const labels = { ...scene.labels, ...metadata?.labels };
    const created = await scene.createPod("one", pod, { ...metadata, labels });
    expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(scene.name);
    expect(created.spec).toMatchObject(spec);
    if (runs && runsPods()) await scene.untilReady(1);
  });

  it("a created pod gets the annotations of patchPodMetadata", async () => {
    const patch = { annotations: { "example.com/mesh": "on" }, patchPolicy: "Retain" };
    const scene = await openScene({ patchPodMetadata: [patch] });
    expect((await scene.createPod("one")).metadata?.annotations).toMatchObject({ "example.com/mesh": "on" });
  });

  it("a pod gets the sidecars of several SidecarSets", async () => {
    const scene = await openScene();
    const other = `${scene.name}-other`;
    await scene.createSet(other, { containers: [{ name: "mesh", image: "mesh:v1" }] });
    const created = await scene.createPod("one");
    expect(created.spec.containers.map(({ name }) => name)).toEqual(["agent", "mesh", "main"]);
    expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(`${scene.name},${other}`);
  });

  it("a v1alpha1 SidecarSet that names its namespace injects the same sidecar", async () => {
    const scene = await openScene({ selector: { matchLabels: { scene: "none" } } });
    const [here, elsewhere] = [`${scene.name}-here`, `${scene.name}-elsewhere`];
    const spec = { selector: { matchLabels: scene.labels }, containers: [SIDECAR] };
    await scene.createOlderSet(here, { ...spec, namespace: scene.name });
    await scene.createOlderSet(elsewhere, { ...spec, namespace: "default" });
    expect((await scene.createPod("one")).metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(here);
  });
});

describe("a created pod gets no sidecar", () => {
  it.each([
    ["where its labels do not match", { selector: { matchLabels: { scene: "none" } } }],
    [
      "where its namespace does not match",
      { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "elsewhere" } } },
    ],
    ["while injection is paused", { injectionStrategy: { paused: true } }],
  ])("%s", async (_what, spec) => {
    const scene = await openScene(spec);
    const created = await scene.createPod("one");
    expect(created.spec.containers.map(({ name }) => name)).toEqual(["main"]);
    expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBeUndefined();
  });
});
