import jsonPatch from "fast-json-patch";
import { describe, expect, it } from "vitest";
import type { Pod, PodCondition } from "../../shared/api/kubernetes.ts";
import {
  conditionPatch,
  fencePatch,
  isPatched,
  type PatchPod,
  patchedPod,
  podPatch,
  resizePatch,
} from "../../shared/controller/rollout/pod-patch.ts";
import type { Patch } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";

const state = { namespace: "shop", name: "a", uid: "u", resourceVersion: "7" };
const pod: Pod = listedPod(
  { ...state, annotations: { "a/b~c": "old", other: "stays" } },
  {
    containers: [
      { name: "main", image: "main:1" },
      { name: "app", image: "app:1" },
    ],
  },
);
const patch: PatchPod = {
  kind: "PatchPod",
  purpose: "upgrade",
  pod: state,
  images: [{ index: 1, container: "app", from: "app:1", to: "app:2" }],
  annotations: { "a/b~c": "new" },
  isFirstAnnotation: false,
  usesBudget: true,
};

/** As the API server applies it. */
function apply(to: Pod, written: Patch): Pod {
  if (written.type !== "json") throw new Error(`not a JSON patch: ${written.type}`);
  return jsonPatch.applyPatch(structuredClone(to), structuredClone(written.operations) as never[], true).newDocument;
}

describe("the patch of a pod", () => {
  it("sets images and annotations, and nothing else", () => {
    const after = apply(pod, podPatch(patch));
    expect(after).toEqual({
      metadata: { ...state, annotations: { "a/b~c": "new", other: "stays" } },
      spec: {
        containers: [
          { name: "main", image: "main:1" },
          { name: "app", image: "app:2" },
        ],
      },
    });
    expect(patchedPod(pod, after.metadata ?? {}, patch)).toEqual(after);
    expect(isPatched(after, patch)).toBe(true);
    expect(isPatched(pod, patch)).toBe(false);
  });

  it("creates the annotations of a pod that has none", () => {
    const bare: Pod = { ...pod, metadata: state };
    expect(apply(bare, podPatch({ ...patch, isFirstAnnotation: true })).metadata?.annotations).toEqual({
      "a/b~c": "new",
    });
  });

  it.each([
    { name: "another pod of that name", found: { ...pod, metadata: { ...pod.metadata, uid: "v" } } },
    { name: "another state of the pod", found: { ...pod, metadata: { ...pod.metadata, resourceVersion: "8" } } },
    {
      name: "another container at that place",
      found: { ...pod, spec: { containers: pod.spec.containers.toReversed() } },
    },
  ])("fails on $name", ({ found }) => {
    expect(() => apply(found, podPatch(patch))).toThrow();
  });
});

describe("the fence of a pod", () => {
  it("changes one annotation, to a value it never had", () => {
    const fenced = apply(pod, fencePatch(state, false));
    expect(fenced.metadata?.annotations).toEqual({ ...pod.metadata?.annotations, "sidecarset.kruise.io/fence": "7" });
    expect(fenced.spec).toEqual(pod.spec);
    expect(() => apply(pod, fencePatch({ ...state, resourceVersion: "6" }, false))).toThrow();
  });
});

describe("the condition of a pod", () => {
  const at = (type: string, message?: string): PodCondition => ({
    type,
    status: "True",
    ...(message ? { message } : {}),
  });
  const withConditions = (...conditions: readonly PodCondition[]): Pod => ({ ...pod, status: { conditions } });
  const [ready, scheduled, mine] = [at("Ready"), at("PodScheduled"), at("Mine", '{"a":true,"b":true}')];
  const write = (...conditions: readonly PodCondition[]) =>
    conditionPatch({ kind: "PatchPodCondition", pod: state, conditions, condition: mine });

  it.each([
    { name: "is added where there is none", seen: [ready, scheduled], after: [ready, scheduled, mine] },
    { name: "is the first of all", seen: [], after: [mine] },
    { name: "takes its own place", seen: [ready, at("Mine", "{}"), scheduled], after: [ready, mine, scheduled] },
  ])("$name", ({ seen, after }) => {
    expect(apply(withConditions(...seen), write(...seen)).status?.conditions).toEqual(after);
  });

  it("is written whatever the kubelet says of others meanwhile", () => {
    const down = { ...ready, status: "False" };
    const moved = { ...pod, metadata: { ...pod.metadata, resourceVersion: "8" }, status: { conditions: [down] } };
    expect(apply(moved, write(ready)).status?.conditions).toEqual([down, mine]);
  });

  it.each([
    { name: "another has added it", seen: [ready], found: [ready, at("Mine", '{"a":true}')] },
    { name: "another has added the same", seen: [ready], found: [ready, mine] },
    { name: "another has added it in the place of one that went", seen: [ready, scheduled], found: [ready, mine] },
    { name: "another has added it in front", seen: [ready, scheduled], found: [mine, ready, scheduled] },
    { name: "another has written it", seen: [at("Mine", "{}")], found: [at("Mine", '{"a":true}')] },
    { name: "it is in another place", seen: [at("Mine", "{}"), ready], found: [ready, at("Mine", "{}")] },
    { name: "one has come", seen: [ready], found: [ready, scheduled] },
    { name: "one has gone", seen: [ready, scheduled], found: [ready] },
  ])("fails where $name", ({ seen, found }) => {
    expect(() => apply(withConditions(...found), write(...seen))).toThrow();
  });

  it("fails on another pod of that name, and on another state of one that had none", () => {
    const other = { ...withConditions(ready), metadata: { ...pod.metadata, uid: "v" } };
    expect(() => apply(other, write(ready))).toThrow();
    const moved = { ...withConditions(), metadata: { ...pod.metadata, resourceVersion: "8" } };
    expect(() => apply(moved, write())).toThrow();
  });
});

describe("the patch of a pod's resources", () => {
  const resources = { requests: { cpu: "100m" } };
  const change = { index: 1, container: "app", resources };

  it("sets those of its container, and nothing else", () => {
    const after = apply(pod, resizePatch(state, [change]));
    expect(after.spec.containers).toEqual([
      { name: "main", image: "main:1" },
      { name: "app", image: "app:1", resources },
    ]);
    expect(after.metadata).toEqual(pod.metadata);
    expect(patchedPod(pod, pod.metadata ?? {}, { images: [], resources: [change] })).toEqual(after);
  });

  it.each([
    { name: "another state of the pod", found: { ...pod, metadata: { ...pod.metadata, resourceVersion: "8" } } },
    {
      name: "another container at that place",
      found: { ...pod, spec: { containers: pod.spec.containers.toReversed() } },
    },
  ])("fails on $name", ({ found }) => {
    expect(() => apply(found, resizePatch(state, [change]))).toThrow();
  });

  it("is never taken for done: what the API server makes of it is read", () => {
    const { annotations } = patch;
    const done: Pod = { ...pod, metadata: { ...pod.metadata, annotations } };
    expect(isPatched(done, { ...patch, images: [] })).toBe(true);
    expect(isPatched(done, { ...patch, images: [], resources: [] })).toBe(false);
  });
});

it("a native sidecar is changed among the init containers, of which a pod may have none", () => {
  const [first, second] = ["log:1", "log:2"];
  const initContainers = [{ name: "log", image: first }];
  const native: Pod = { ...pod, spec: { ...pod.spec, initContainers } };
  const change = { index: 0, container: "log", from: first, to: second, list: "initContainers" } as const;
  const written = { ...patch, images: [change] };
  const after = apply(native, podPatch(written));
  expect(after.spec).toEqual({ ...pod.spec, initContainers: [{ name: "log", image: second }] });
  expect(patchedPod(native, after.metadata ?? {}, written)).toEqual(after);
  expect(isPatched(after, written)).toBe(true);
  expect(isPatched({ ...after, spec: native.spec }, written)).toBe(false);
  const { spec } = patchedPod(pod, pod.metadata ?? {}, { images: [] });
  expect(Object.keys(spec)).toEqual(["containers"]);
});

it("a pod carries a patch once it has all of its annotations", () => {
  const { images } = patch;
  const annotations = { first: "1", second: "2" };
  const after = apply(pod, podPatch({ ...patch, annotations }));
  expect(isPatched(after, { ...patch, images, annotations })).toBe(true);
  const half: Pod = { ...after, metadata: { ...after.metadata, annotations: { first: "1", second: "1" } } };
  expect(isPatched(half, { ...patch, images, annotations })).toBe(false);
});

it("resources are those of containers, also where an init container has the same place", () => {
  const initContainers = [
    { name: "log", image: "log:1" },
    { name: "more", image: "more:1" },
  ];
  const native: Pod = { ...pod, spec: { ...pod.spec, initContainers } };
  const resources = [{ index: 1, container: "app", resources: { requests: { cpu: "1" } } }];
  const { spec } = patchedPod(native, pod.metadata ?? {}, { images: [], resources });
  expect(spec.initContainers).toEqual(initContainers);
  expect(spec.containers[1]).toHaveProperty("resources");
});
