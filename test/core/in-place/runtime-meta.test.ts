import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { areHashesConsistent, hasRuntimeMeta } from "../../../shared/core/statefulset/in-place/runtime-meta.ts";
import { whyBatchNotCompleted, whyNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
import type { InPlaceState } from "../../../shared/core/statefulset/in-place/update-spec.ts";
import { listedPod } from "../../support/objects.ts";

const META = "apps.kruise.io/runtime-containers-meta";

function podOf(meta: unknown, changes: Partial<Pod["spec"]> = {}): Pod {
  return listedPod(
    { annotations: { [META]: typeof meta === "string" ? meta : JSON.stringify(meta) }, labels: { l: "v" } },
    { containers: [{ name: "a" }], ...changes },
    { containerStatuses: [{ name: "a", containerID: "id" }] },
  );
}

const reported = (hashes: unknown, containerID: string | undefined = "id") => ({
  containers: ["x", { name: "b" }, { name: "a", containerID, hashes }],
});

describe("the hashes that a node agent reports", () => {
  test("are there as soon as the annotation is an object", () => {
    expect([
      hasRuntimeMeta(podOf({})),
      hasRuntimeMeta(podOf("[]")),
      hasRuntimeMeta({ spec: { containers: [] } }),
    ]).toEqual([true, false, false]);
  });

  const rows: readonly [sentence: string, pod: Pod, isConsistent: boolean][] = [
    ["agree for a container that reads nothing", podOf(reported({})), true],
    ["agree where none are reported", podOf(reported(undefined)), true],
    ["agree at 0", podOf(reported({ extractedEnvFromMetadataHash: 0 })), true],
    ["disagree at another number", podOf(reported({ extractedEnvFromMetadataHash: 1 })), false],
    ["disagree for another container of the name", podOf(reported({}, "before")), false],
    ["disagree where the container is not reported", podOf({ containers: [] }), false],
    ["disagree where nothing is a list", podOf({ containers: { a: 1 } }), false],
    ["disagree without a status", { ...podOf(reported({})), status: {} }, false],
    [
      "disagree before there is any status",
      { metadata: podOf(reported({})).metadata ?? {}, spec: { containers: [{ name: "a" }] } },
      false,
    ],
    ["agree for no container", podOf({}, { containers: [] }), true],
  ];
  test.each(rows)("%s", (_, pod, isConsistent) => {
    expect(areHashesConsistent(pod, "environment")).toBe(isConsistent);
  });

  test("agree for containers without an id", () => {
    const pod = podOf({ containers: [{ name: "a" }] });
    expect(areHashesConsistent({ ...pod, status: { containerStatuses: [{ name: "a" }] } }, "environment")).toBe(true);
  });

  test("of a plain container agree at the kubelet's own hash", () => {
    const hashed = (name: string, plainHash: number, image?: string): Pod => ({
      ...podOf({ containers: [{ name, hashes: { plainHash } }] }),
      spec: { containers: [image === undefined ? { name } : { name, image }] },
      status: { containerStatuses: [{ name }] },
    });
    // Source: Kubernetes pkg/kubelet/container, TestHashContainer.
    expect(areHashesConsistent(hashed("test_container", 0x8e45cbd0, "foo/image:v1"), "plain")).toBe(true);
    expect(areHashesConsistent(hashed("test_container", 0x8e45cbd1, "foo/image:v1"), "plain")).toBe(false);
    expect(areHashesConsistent(hashed("a", 0x033f2e30), "plain")).toBe(true);
  });

  test("of a plain container agree at the hash of a kubelet before 1.31, too", () => {
    const container = {
      name: "test_container",
      image: "foo/image:v1",
      args: ["/bin/sh", "-c", "echo abc"],
      ports: [{ containerPort: 8001 }],
    };
    const hashed = (hashes: object, given: object = container): Pod => ({
      ...podOf({ containers: [{ name: "test_container", hashes }] }),
      spec: { containers: [given as Pod["spec"]["containers"][number]] },
      status: { containerStatuses: [{ name: "test_container" }] },
    });
    // Source: Kubernetes 1.30 pkg/kubelet/container, TestHashContainer.
    expect(areHashesConsistent(hashed({ plainHash: 0x3c42280f }), "plain")).toBe(true);
    expect(areHashesConsistent(hashed({ plainHash: 0x8e45cbd0 }), "plain")).toBe(true);
    expect(areHashesConsistent(hashed({ plainHash: 0x3c42280e }), "plain")).toBe(false);
    const unreadable = { ...container, args: "echo" };
    expect(areHashesConsistent(hashed({ plainHash: 0x8e45cbd0 }, unreadable), "plain")).toBe(true);
    expect(areHashesConsistent(hashed({}, unreadable), "plain")).toBe(false);
  });

  test("of the environment are of names and values", () => {
    const env = [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.labels['l']" } } }];
    const hashed = (extractedEnvFromMetadataHash: number, metadata: Pod["metadata"]): Pod => {
      const pod = podOf(reported({ extractedEnvFromMetadataHash }), { containers: [{ name: "a", env }] });
      const { annotations = {} } = pod.metadata ?? {};
      return { ...pod, metadata: { ...metadata, annotations } };
    };
    expect(areHashesConsistent(hashed(0xe138e4db, { labels: { l: "v" } }), "environment")).toBe(true);
    for (const metadata of [{}, { labels: {} }, { labels: { l: "" } }]) {
      expect(areHashesConsistent(hashed(0xd21097fe, metadata), "environment")).toBe(true);
    }
  });

  test("never agree where no metadata is there", () => {
    const spec = { containers: [{ name: "a" }] };
    for (const metadata of [undefined, {}, { annotations: {} }]) {
      const pod = metadata ? { metadata, spec } : { spec };
      expect([hasRuntimeMeta(pod), areHashesConsistent(pod, "plain")]).toEqual([false, false]);
    }
  });

  test("of a plain container never agree where none is reported", () => {
    expect(areHashesConsistent(podOf(reported({})), "plain")).toBe(false);
    expect(areHashesConsistent(podOf({}, { containers: [] }), "plain")).toBe(true);
  });
});

describe("an update is not complete", () => {
  const JSON_PROBLEM = "invalid character 'o' looking for beginning of object key string";
  const STATE: InPlaceState = { revision: "r", updateTimestamp: "2025-06-01T00:00:00Z", lastContainerStatuses: null };
  const bare = (status: Pod["status"] = {}): Pod => ({ spec: { containers: [{ name: "a", image: "a" }] }, status });
  const at = (imageID: string, image?: string) =>
    bare({ containerStatuses: [{ name: "a", imageID, ...(image === undefined ? {} : { image }) }] });
  const before: InPlaceState = { ...STATE, lastContainerStatuses: { a: { imageID: "1" } } };
  const rows: readonly [sentence: string, pod: Pod, state: InPlaceState, why: string | undefined][] = [
    ["unless nothing was recorded", bare(), STATE, undefined],
    ["while what a node agent reports is no JSON", podOf("{oops"), STATE, JSON_PROBLEM],
    ["while what a node agent reports ends early", podOf(""), STATE, "unexpected end of JSON input"],
    ["while what a node agent reports is no object", podOf("[]"), STATE, `annotation ${META} is not a JSON object`],
    ["unless a node agent reports nothing", podOf("null"), STATE, undefined],
    ["without a status", bare(), before, "not found statuses of containers map[a:{1}]"],
    [
      "without some statuses",
      bare({ containerStatuses: [{ name: "c", imageID: "1" }] }),
      { ...STATE, lastContainerStatuses: { b: {}, a: { imageID: "1" } } },
      "not found statuses of containers map[a:{1} b:{}]",
    ],
    [
      "at the same imageID, which is said before what has no status",
      at("1", "b"),
      { ...STATE, lastContainerStatuses: { "0": { imageID: "1" }, a: { imageID: "1" } } },
      "container a imageID not changed",
    ],
    ["at the same imageID and another image", at("1", "b"), before, "container a imageID not changed"],
    ["at the same imageID and no image", at("1"), before, "container a imageID not changed"],
    ["unless the image is there, at its tag latest", at("1", "a:latest"), before, undefined],
    ["unless the imageID is another", at("2", "b"), before, undefined],
    [
      "at no imageID, as before",
      bare({ containerStatuses: [{ name: "a", image: "b" }] }),
      { ...STATE, lastContainerStatuses: { a: {} } },
      "container a imageID not changed",
    ],
    [
      "while the environment has no hashes",
      bare(),
      { ...STATE, updateEnvFromMetadata: true },
      "waiting for all containers hash consistent, but runtime-container-meta not found",
    ],
    [
      "while the hashes of the environment differ",
      podOf(reported({ extractedEnvFromMetadataHash: 1 })),
      { ...STATE, updateEnvFromMetadata: true },
      "waiting for all containers hash consistent",
    ],
    [
      "once the hashes of the environment agree",
      podOf(reported({})),
      { ...STATE, updateEnvFromMetadata: true },
      undefined,
    ],
  ];
  test.each(rows)("%s", (_, pod, state, why) => {
    expect(whyBatchNotCompleted(pod, state)).toBe(why);
  });

  const ran = (hashes: unknown): Pod => ({
    ...podOf({ containers: [{ name: "test_container", hashes }] }),
    spec: { containers: [{ name: "test_container", image: "foo/image:v1" }] },
    status: { containerStatuses: [{ name: "test_container", imageID: "1", image: "before" }] },
  });
  const hashed: readonly [sentence: string, hashes: unknown, why: string | undefined][] = [
    ["unless the kubelet started it as it should be", { plainHash: 0x8e45cbd0 }, undefined],
    ["where the kubelet started something else", { plainHash: 1 }, "container test_container imageID not changed"],
    ["where the kubelet reports no hash", {}, "container test_container imageID not changed"],
  ];
  test.each(hashed)("at the same imageID, %s", (_, hashes, why) => {
    expect(
      whyBatchNotCompleted(ran(hashes), { ...STATE, lastContainerStatuses: { test_container: { imageID: "1" } } }),
    ).toBe(why);
  });

  test("for a container that the pod has no more, nor for its neighbour's image", () => {
    const statuses = { containerStatuses: [{ name: "gone", imageID: "1", image: "a:latest" }] };
    expect(whyBatchNotCompleted(bare(statuses), { ...STATE, lastContainerStatuses: { gone: { imageID: "1" } } })).toBe(
      "container gone imageID not changed",
    );
  });

  const resized = { ...STATE, updateResources: true };
  const resources = { limits: { cpu: "1" }, requests: { cpu: "1" } };
  const unchanged = (name: string) => `container ${name} resources not changed`;
  const sized: readonly [sentence: string, statuses: readonly object[] | undefined, why: string | undefined][] = [
    ["is missing", undefined, "some container status is not reported"],
    ["is missing for one of them", [{ name: "a", resources }], "some container status is not reported"],
    ["says nothing of resources", [{ name: "a" }, { name: "b", resources: {} }], unchanged("a")],
    [
      "has none",
      [
        { name: "a", resources: {} },
        { name: "b", resources: {} },
      ],
      unchanged("a"),
    ],
    [
      "has some",
      [
        { name: "a", resources: { limits: { cpu: "1" } } },
        { name: "b", resources: {} },
      ],
      unchanged("a"),
    ],
    ["has others", [{ name: "a", resources: { ...resources, limits: { cpu: "2" } } }, { name: "b" }], unchanged("a")],
    ["of a container that asks for none says nothing", [{ name: "a", resources }, { name: "b" }], unchanged("b")],
    [
      "of one that asks for none has some",
      [
        { name: "b", resources },
        { name: "a", resources: {} },
      ],
      unchanged("b"),
    ],
    [
      "is of another container",
      [
        { name: "a", resources },
        { name: "z", resources: {} },
      ],
      unchanged("z"),
    ],
    [
      "unless it says the same in another way",
      [
        { name: "b", resources: {} },
        { name: "a", resources: { ...resources, limits: { cpu: "1000m" } } },
      ],
      undefined,
    ],
  ];
  test.each(sized)("where resources changed and a status %s", (_, containerStatuses, why) => {
    const spec = { containers: [{ name: "b" }, { name: "a", resources }] };
    const pod = (containerStatuses ? { spec, status: { containerStatuses } } : { spec }) as Pod;
    expect(whyBatchNotCompleted(pod, resized)).toBe(why);
    expect(whyBatchNotCompleted(pod, STATE)).toBeUndefined();
  });

  test("in its grace period, nor before the last batch", () => {
    const pod = (key: string, value: unknown): Pod => ({
      ...bare(),
      metadata: { annotations: { [key]: JSON.stringify(value) } },
    });
    expect(whyNotCompleted(pod("apps.kruise.io/inplace-update-grace", {}))).toBe(
      "still in grace period of in-place update",
    );
    const key = "apps.kruise.io/inplace-update-state";
    for (const next of ["nextContainerImages", "nextContainerRefMetadata", "nextContainerResources"]) {
      expect(whyNotCompleted(pod(key, { ...STATE, [next]: { a: {} } }))).toBe(
        "existing containers to in-place update in next batches",
      );
      expect(whyNotCompleted(pod(key, { ...STATE, [next]: {} }))).toBeUndefined();
    }
    expect(whyNotCompleted(bare())).toBeUndefined();
  });
});
