import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { areHashesConsistent, hasRuntimeMeta } from "../../../shared/core/statefulset/in-place/metadata.ts";
import { whyBatchNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
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

describe("areHashesConsistent and hasRuntimeMeta:", () => {
  const rows: readonly [sentence: string, pod: Pod, isConsistent: boolean][] = [
    ["is true for a container that reads no metadata", podOf(reported({})), true],
    ["is true if no hashes are reported", podOf(reported(undefined)), true],
    ["is true if the reported hash is 0", podOf(reported({ extractedEnvFromMetadataHash: 0 })), true],
    ["is false if another hash is reported", podOf(reported({ extractedEnvFromMetadataHash: 1 })), false],
    ["is false if the report is about an earlier container", podOf(reported({}, "before")), false],
    ["is false if the container is not reported", podOf({ containers: [] }), false],
    ["is false if the reported containers are not a list", podOf({ containers: { a: 1 } }), false],
    ["is false if the pod has no container statuses", { ...podOf(reported({})), status: {} }, false],

    ["is true for a pod without containers", podOf({}, { containers: [] }), true],
  ];
  test.each(rows)("areHashesConsistent %s", (_, pod, isConsistent) => {
    expect(areHashesConsistent(pod, "environment")).toBe(isConsistent);
  });

  test("the plain hash of a container equals the kubelet's", () => {
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

  test("the plain hash of a kubelet before 1.31 is accepted too", () => {
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

  test("the hash of the environment covers names and values", () => {
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

  test("areHashesConsistent is false without the annotation", () => {
    const spec = { containers: [{ name: "a" }] };
    for (const metadata of [undefined, {}, { annotations: {} }]) {
      const pod = metadata ? { metadata, spec } : { spec };
      expect([hasRuntimeMeta(pod), areHashesConsistent(pod, "plain")]).toEqual([false, false]);
    }
  });
});

describe("whyBatchNotCompleted:", () => {
  const JSON_PROBLEM = "invalid character 'o' looking for beginning of object key string";
  const STATE: InPlaceState = { revision: "r", updateTimestamp: "2025-06-01T00:00:00Z", lastContainerStatuses: null };
  const bare = (status: Pod["status"] = {}): Pod => ({ spec: { containers: [{ name: "a", image: "a" }] }, status });
  const at = (imageID: string, image?: string) =>
    bare({ containerStatuses: [{ name: "a", imageID, ...(image === undefined ? {} : { image }) }] });
  const before: InPlaceState = { ...STATE, lastContainerStatuses: { a: { imageID: "1" } } };
  const rows: readonly [sentence: string, pod: Pod, state: InPlaceState, why: string | undefined][] = [
    ["a pod without any record", bare(), STATE, undefined],
    ["a report that is not JSON", podOf("{oops"), STATE, JSON_PROBLEM],
    ["an empty report", podOf(""), STATE, "unexpected end of JSON input"],
    ["a report that is a list", podOf("[]"), STATE, `annotation ${META} is not a JSON object`],
    ["a report that is null", podOf("null"), STATE, undefined],
    ["a pod without a status", bare(), before, "not found statuses of containers map[a:{1}]"],
    [
      "a pod without some statuses",
      bare({ containerStatuses: [{ name: "c", imageID: "1" }] }),
      { ...STATE, lastContainerStatuses: { b: {}, a: { imageID: "1" } } },
      "not found statuses of containers map[a:{1} b:{}]",
    ],

    ["the same imageID and another image", at("1", "b"), before, "container a imageID not changed"],
    ["the same imageID and no image", at("1"), before, "container a imageID not changed"],
    ["the same imageID and the right image with the tag latest", at("1", "a:latest"), before, undefined],
    ["another imageID", at("2", "b"), before, undefined],
    [
      "no imageID before and after",
      bare({ containerStatuses: [{ name: "a", image: "b" }] }),
      { ...STATE, lastContainerStatuses: { a: {} } },
      "container a imageID not changed",
    ],

    [
      "different hashes of the environment",
      podOf(reported({ extractedEnvFromMetadataHash: 1 })),
      { ...STATE, updateEnvFromMetadata: true },
      "waiting for all containers hash consistent",
    ],
    ["equal hashes of the environment", podOf(reported({})), { ...STATE, updateEnvFromMetadata: true }, undefined],
  ];
  test.each(rows)("whyBatchNotCompleted returns the right reason for %s", (_, pod, state, why) => {
    expect(whyBatchNotCompleted(pod, state)).toBe(why);
  });

  const ran = (hashes: unknown): Pod => ({
    ...podOf({ containers: [{ name: "test_container", hashes }] }),
    spec: { containers: [{ name: "test_container", image: "foo/image:v1" }] },
    status: { containerStatuses: [{ name: "test_container", imageID: "1", image: "before" }] },
  });
  const hashed: readonly [sentence: string, hashes: unknown, why: string | undefined][] = [
    ["the hash of the wanted container", { plainHash: 0x8e45cbd0 }, undefined],
    ["the hash of another container", { plainHash: 1 }, "container test_container imageID not changed"],
    ["no hash", {}, "container test_container imageID not changed"],
  ];
  test.each(hashed)(
    "whyBatchNotCompleted with the same imageID returns the right result if the kubelet reports %s",
    (_, hashes, why) => {
      expect(
        whyBatchNotCompleted(ran(hashes), { ...STATE, lastContainerStatuses: { test_container: { imageID: "1" } } }),
      ).toBe(why);
    },
  );

  test("the image of a container does not count for a removed container", () => {
    const statuses = { containerStatuses: [{ name: "gone", imageID: "1", image: "a:latest" }] };
    expect(whyBatchNotCompleted(bare(statuses), { ...STATE, lastContainerStatuses: { gone: { imageID: "1" } } })).toBe(
      "container gone imageID not changed",
    );
  });

  const resized = { ...STATE, updateResources: true };
  const resources = { limits: { cpu: "1" }, requests: { cpu: "1" } };
  const unchanged = (name: string) => `container ${name} resources not changed`;
  const sized: readonly [sentence: string, statuses: readonly object[] | undefined, why: string | undefined][] = [
    ["pod without statuses", undefined, "some container status is not reported"],
    ["pod without one of its statuses", [{ name: "a", resources }], "some container status is not reported"],
    ["status without resources", [{ name: "a" }, { name: "b", resources: {} }], unchanged("a")],
    [
      "status with empty resources",
      [
        { name: "a", resources: {} },
        { name: "b", resources: {} },
      ],
      unchanged("a"),
    ],

    [
      "status with other resources",
      [{ name: "a", resources: { ...resources, limits: { cpu: "2" } } }, { name: "b" }],
      unchanged("a"),
    ],
    ["container without resources whose status has none", [{ name: "a", resources }, { name: "b" }], unchanged("b")],
    [
      "container without resources whose status has some",
      [
        { name: "b", resources },
        { name: "a", resources: {} },
      ],
      unchanged("b"),
    ],

    [
      "status with the same resources in another form",
      [
        { name: "b", resources: {} },
        { name: "a", resources: { ...resources, limits: { cpu: "1000m" } } },
      ],
      undefined,
    ],
  ];
  test.each(sized)(
    "after a change of resources, whyBatchNotCompleted returns the right reason for a %s",
    (_, containerStatuses, why) => {
      const spec = { containers: [{ name: "b" }, { name: "a", resources }] };
      const pod = (containerStatuses ? { spec, status: { containerStatuses } } : { spec }) as Pod;
      expect(whyBatchNotCompleted(pod, resized)).toBe(why);
      expect(whyBatchNotCompleted(pod, STATE)).toBeUndefined();
    },
  );
});
