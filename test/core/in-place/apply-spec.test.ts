import { describe, expect, test } from "vitest";
import type { Container, Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import { applySpec } from "../../../shared/core/statefulset/in-place/apply-spec.ts";
import type { InPlaceState } from "../../../shared/core/statefulset/in-place/update-spec.ts";
import { NOW } from "../../support/rollout-fixture.ts";

type Spec = Parameters<typeof applySpec>[1];

const NOTHING: Spec = { containerImages: {}, containerRefMetadata: {}, containerResources: {} };
const STATE: InPlaceState = { revision: "r", updateTimestamp: NOW, lastContainerStatuses: null };

const waitingFor = (name: string, key: string): Container => ({
  name,
  image: "x:1",
  env: [{ name: "A" }, { name: "KRUISE_CONTAINER_BARRIER", valueFrom: { configMapKeyRef: { key } } }],
});

function apply(containers: readonly Container[], spec: Partial<Spec>, pod: Partial<Pod> = {}, state = STATE) {
  const after = applySpec({ spec: { containers }, ...pod }, { ...NOTHING, ...spec }, state, { now: NOW });
  const recorded: InPlaceState = JSON.parse(after.metadata?.annotations?.[IN_PLACE_STATE_ANNOTATION] ?? "{}");
  return { after, recorded };
}

const imagesOf = (containers: readonly Container[]) =>
  Object.fromEntries(containers.map(({ name }) => [name, `${name}:2`]));

/** Returns the containers that the first batch updates. */
function batchOf(containers: readonly Container[], spec: Partial<Spec> = {}) {
  const { recorded } = apply(containers, { containerImages: imagesOf(containers), ...spec });
  return recorded.containerBatchesRecord?.[0]?.containers;
}

describe("the first batch of applySpec:", () => {
  const high = waitingFor("high", "p_2");
  const rows: readonly [sentence: string, other: Container, isFirst: boolean][] = [
    ["a container of a lower priority is not in the first batch", waitingFor("z", "p_1"), false],
    ["a container of the same priority is in the first batch", waitingFor("z", "p_2"), true],
    ["a priority with a plus sign counts", waitingFor("z", "p_+2"), true],
    ["a priority below 0 counts as lower", waitingFor("z", "p_-3"), false],
    ["digits followed by a letter count as priority 0", waitingFor("z", "p_2x"), false],
    ["digits after a letter count as priority 0", waitingFor("z", "p_x2"), false],
    ["a container without a barrier is in the first batch", { name: "z", env: [{ name: "A" }] }, true],
    ["a container without environment variables is in the first batch", { name: "z" }, true],
    ["a barrier without a key counts as priority 0", { name: "z", env: [{ name: "KRUISE_CONTAINER_BARRIER" }] }, false],
    [
      "a barrier from another source counts as priority 0",
      { name: "z", env: [{ name: "KRUISE_CONTAINER_BARRIER", valueFrom: {} }] },
      false,
    ],
  ];
  test.each(rows)("%s", (_, other, isFirst) => {
    expect(batchOf([high, other])).toEqual(isFirst ? ["high", "z"] : ["high"]);
  });

  test("the first batch is the only one if the pod lacks the other containers", () => {
    const { recorded } = apply([{ name: "a" }], {
      containerImages: { a: "a:2", gone: "gone:2" },
      containerResources: { gone: { limits: { cpu: "1" } } },
    });
    const { nextContainerImages, nextContainerResources, preCheckBeforeNext } = recorded;
    expect([nextContainerImages, nextContainerResources, preCheckBeforeNext]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("priorities below 0 are compared as numbers", () => {
    expect(batchOf([waitingFor("a", "p_-2"), waitingFor("b", "p_-1")])).toEqual(["b"]);
    expect(batchOf([waitingFor("a", "p_-12"), waitingFor("b", "p_x")])).toEqual(["b"]);
  });

  test("the first batch includes containers that read the same changed metadata", () => {
    const containers = [
      waitingFor("top", "p_9"),
      { name: "a" },
      waitingFor("b", "p_1"),
      waitingFor("c", "p_1"),
      waitingFor("other-label", "p_1"),
      waitingFor("same-key-of-annotations", "p_1"),
      waitingFor("other-annotation", "p_1"),
    ];
    const containerRefMetadata = {
      a: { labels: { x: "1" }, annotations: { n: "1" } },
      b: { labels: { x: "1", y: "1" } },
      c: { labels: { y: "1" } },
      "other-label": { labels: { z: "1", n: "1" } },
      "same-key-of-annotations": { annotations: { x: "1" } },
      "other-annotation": { annotations: { m: "1" } },
    };
    expect(batchOf(containers, { containerRefMetadata })).toEqual(["a", "b", "c", "top"]);
    const annotations = { n: "1", o: "1" };
    expect(
      batchOf(containers, {
        containerRefMetadata: { ...containerRefMetadata, "other-annotation": { annotations } },
      }),
    ).toEqual(["a", "b", "c", "other-annotation", "top"]);
  });
});

describe("the writes of applySpec:", () => {
  const containers = [{ name: "now" }, waitingFor("later", "p_1"), waitingFor("first", "p_2")];

  test("only the metadata that the containers of the batch read is written", () => {
    const containerRefMetadata = {
      now: { labels: { a: "new" }, annotations: { b: "new" } },
      later: { labels: { c: "new" }, annotations: { d: "new" } },
      first: {},
    };
    const metadata = { labels: { a: "old", c: "old" }, annotations: { b: "old", d: "old", e: "old" } };
    const { after, recorded } = apply(containers, { containerRefMetadata }, { metadata });
    expect(after.metadata).toEqual({
      labels: { a: "new", c: "old" },
      annotations: { b: "new", d: "old", e: "old", [IN_PLACE_STATE_ANNOTATION]: expect.any(String) },
    });
    expect(recorded.nextContainerRefMetadata).toEqual({ later: containerRefMetadata.later });
    expect(recorded.preCheckBeforeNext).toEqual({ containersRequiredReady: ["first", "now"] });
  });

  test("new resources are merged into the existing ones", () => {
    const resources = { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } };
    const change = { limits: { cpu: "2" }, requests: { memory: "2Gi" } };
    const { after } = apply([{ name: "a", resources }, { name: "b" }], {
      containerResources: { a: change, b: change },
    });
    expect(after.spec.containers).toEqual([
      { name: "a", resources: { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1", memory: "2Gi" } } },
      { name: "b", resources: change },
    ]);
  });

  test("the metadata patch is applied, and null removes a field", () => {
    const metadata = { name: "p", generateName: "p-", labels: { a: "1", b: "1" } };
    const patch = { generateName: null, labels: { a: null, c: "1" }, annotations: { d: "1" }, namespace: "n" };
    const { after } = apply([], { metaDataPatch: JSON.stringify({ metadata: patch }) }, { metadata });
    expect(after.metadata).toEqual({
      name: "p",
      namespace: "n",
      labels: { b: "1", c: "1" },
      annotations: { d: "1", [IN_PLACE_STATE_ANNOTATION]: expect.any(String) },
    });
    expect(Object.keys(after.metadata ?? {})).not.toContain("generateName");
  });
});

describe("lastContainerStatuses of applySpec:", () => {
  const image = { containerImages: { a: "a:2" } };
  const statusOf = (...names: readonly string[]): Partial<Pod> => ({
    status: { containerStatuses: names.map((name) => ({ name, imageID: `${name}@id` })) },
  });

  test("nothing is recorded without a status", () => {
    expect(apply([{ name: "a" }], image).recorded.lastContainerStatuses).toBeNull();
    expect(apply([{ name: "a" }], image, { status: {} }).recorded.lastContainerStatuses).toBeNull();
  });

  test("the records of earlier batches stay", () => {
    const state = { ...STATE, lastContainerStatuses: { a: { imageID: "first" }, z: {} } };
    const again = apply([{ name: "a" }], image, statusOf("a"), state);
    expect(again.recorded.lastContainerStatuses).toEqual(state.lastContainerStatuses);
    const metadataOnly = apply([{ name: "a" }], { containerRefMetadata: { a: { labels: { x: "1" } } } }, {}, state);
    expect(metadataOnly.recorded.lastContainerStatuses).toEqual(state.lastContainerStatuses);
  });
});
