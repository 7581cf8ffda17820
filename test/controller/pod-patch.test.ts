import jsonPatch from "fast-json-patch";
import { describe, expect, it } from "vitest";
import { applyMergePatch } from "../../infra/local/patch/patch.ts";
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

/** Applies a patch as the API server does. */
function apply(to: Pod, written: Patch): Pod {
  if (written.type === "merge") return applyMergePatch(structuredClone(to), written.body) as Pod;
  if (written.type !== "json") throw new Error(`neither a JSON patch nor a merge: ${written.type}`);
  return jsonPatch.applyPatch(structuredClone(to), structuredClone(written.operations) as never[], true).newDocument;
}

describe("podPatch:", () => {
  it("the patch of a pod sets images and annotations and nothing else", () => {
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

  it("the patch of a pod without annotations creates them", () => {
    const bare: Pod = { ...pod, metadata: state };
    expect(apply(bare, podPatch({ ...patch, isFirstAnnotation: true })).metadata?.annotations).toEqual({
      "a/b~c": "new",
    });
  });

  it.each([
    { name: "another pod of the same name", found: { ...pod, metadata: { ...pod.metadata, uid: "v" } } },
    {
      name: "another resourceVersion of the pod",
      found: { ...pod, metadata: { ...pod.metadata, resourceVersion: "8" } },
    },
    {
      name: "another container at the same index",
      found: { ...pod, spec: { containers: pod.spec.containers.toReversed() } },
    },
  ])("the patch of a pod fails on $name", ({ found }) => {
    expect(() => apply(found, podPatch(patch))).toThrow();
  });
});

it("a fence changes one annotation to a new value, for the given pod and resourceVersion", () => {
  const fenced = apply(pod, fencePatch(state));
  expect(fenced.metadata?.annotations).toEqual({ ...pod.metadata?.annotations, "sidecarset.kruise.io/fence": "7" });
  expect(fenced.spec).toEqual(pod.spec);
  expect(fenced.metadata).toMatchObject({ uid: state.uid, resourceVersion: state.resourceVersion });
});

describe("conditionPatch:", () => {
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
    { name: "is added when the pod does not have it", seen: [ready, scheduled], after: [ready, scheduled, mine] },
    { name: "becomes the first condition", seen: [], after: [mine] },
    {
      name: "replaces its old value at the same index",
      seen: [ready, at("Mine", "{}"), scheduled],
      after: [ready, mine, scheduled],
    },
  ])("a written condition $name", ({ seen, after }) => {
    expect(apply(withConditions(...seen), write(...seen)).status?.conditions).toEqual(after);
  });

  it("a condition is written although the kubelet changed other conditions in the meantime", () => {
    const down = { ...ready, status: "False" };
    const moved = { ...pod, metadata: { ...pod.metadata, resourceVersion: "8" }, status: { conditions: [down] } };
    expect(apply(moved, write(ready)).status?.conditions).toEqual([down, mine]);
  });

  it.each([
    {
      name: "somebody else has added the same condition with another message",
      seen: [ready],
      found: [ready, at("Mine", '{"a":true}')],
    },
    { name: "somebody else has added the same condition", seen: [ready], found: [ready, mine] },
    {
      name: "somebody else has added the condition at the index of a removed one",
      seen: [ready, scheduled],
      found: [ready, mine],
    },
    {
      name: "somebody else has added the condition before the others",
      seen: [ready, scheduled],
      found: [mine, ready, scheduled],
    },
    { name: "somebody else has changed the condition", seen: [at("Mine", "{}")], found: [at("Mine", '{"a":true}')] },
    {
      name: "the condition has moved to another index",
      seen: [at("Mine", "{}"), ready],
      found: [ready, at("Mine", "{}")],
    },
    { name: "another condition was added", seen: [ready], found: [ready, scheduled] },
    { name: "another condition was removed", seen: [ready, scheduled], found: [ready] },
  ])("the patch of a condition fails when $name", ({ seen, found }) => {
    expect(() => apply(withConditions(...found), write(...seen))).toThrow();
  });

  it("the patch of a condition fails on another pod of the same name, and on a changed pod that had no conditions", () => {
    const other = { ...withConditions(ready), metadata: { ...pod.metadata, uid: "v" } };
    expect(() => apply(other, write(ready))).toThrow();
    const moved = { ...withConditions(), metadata: { ...pod.metadata, resourceVersion: "8" } };
    expect(() => apply(moved, write())).toThrow();
  });
});

describe("resizePatch:", () => {
  const resources = { requests: { cpu: "100m" } };
  const change = { index: 1, container: "app", resources };

  it("the patch of a pod's resources changes one container's resources and nothing else", () => {
    const after = apply(pod, resizePatch(state, [change]));
    expect(after.spec.containers).toEqual([
      { name: "main", image: "main:1" },
      { name: "app", image: "app:1", resources },
    ]);
    expect(after.metadata).toEqual(pod.metadata);
    expect(patchedPod(pod, pod.metadata ?? {}, { images: [], resources: [change] })).toEqual(after);
  });

  it.each([
    {
      name: "another resourceVersion of the pod",
      found: { ...pod, metadata: { ...pod.metadata, resourceVersion: "8" } },
    },
    {
      name: "another container at the same index",
      found: { ...pod, spec: { containers: pod.spec.containers.toReversed() } },
    },
  ])("the patch of a pod's resources fails on $name", ({ found }) => {
    expect(() => apply(found, resizePatch(state, [change]))).toThrow();
  });

  it("isPatched is never true for a patch of resources", () => {
    const { annotations } = patch;
    const done: Pod = { ...pod, metadata: { ...pod.metadata, annotations } };
    expect(isPatched(done, { ...patch, images: [] })).toBe(true);
    expect(isPatched(done, { ...patch, images: [], resources: [] })).toBe(false);
  });
});

it("the patch of a native sidecar changes an init container", () => {
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

it("isPatched is true only when the pod has all annotations of the patch", () => {
  const { images } = patch;
  const annotations = { first: "1", second: "2" };
  const after = apply(pod, podPatch({ ...patch, annotations }));
  expect(isPatched(after, { ...patch, images, annotations })).toBe(true);
  const half: Pod = { ...after, metadata: { ...after.metadata, annotations: { first: "1", second: "1" } } };
  expect(isPatched(half, { ...patch, images, annotations })).toBe(false);
});

it("patchedPod sets resources on a container, not on the init container with the same index", () => {
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
