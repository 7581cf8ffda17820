import { describe, expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import { isConsistent } from "../../../shared/core/pod/is-consistent.ts";
import { podOf } from "../../support/rollout-fixture.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;
const SIDECAR = new Set(["sc"]);
const MAIN: ContainerStatus = { name: "main", image: "reg/main:v1", imageID: "m", ready: true };

function podAt(image: string, sidecar: Partial<ContainerStatus>, state?: unknown): Pod {
  const annotations =
    state === undefined
      ? {}
      : { [IN_PLACE_UPDATE_STATE_ANNOTATION]: typeof state === "string" ? state : JSON.stringify(state) };
  return podOf({ image, annotations, statuses: [MAIN, { name: "sc", ...sidecar }] });
}

const recorded = (imageID?: string, set = "ss") => ({
  [set]: { lastContainerStatuses: { sc: imageID ? { imageID } : {} } },
});

describe("isConsistent with images by tag:", () => {
  test.each([
    ["is true without a record, whatever image the status has", podAt("sc:v2", { image: "sc:v1", imageID: "1" }), true],
    [
      "is true if the imageID differs from the record, whatever image the status has",
      podAt("sc:v2", { image: "sc:v1", imageID: "2" }, recorded("1")),
      true,
    ],
    [
      "is false with the recorded imageID and the old image",
      podAt("sc:v2", { image: "sc:v1", imageID: "1" }, recorded("1")),
      false,
    ],
    [
      "is true with the recorded imageID and the new image",
      podAt("sc:v2", { image: "sc:v2", imageID: "1" }, recorded("1")),
      true,
    ],
    [
      "is false without an imageID in the record and in the status",
      podAt("sc:v2", { image: "sc:v1" }, recorded()),
      false,
    ],
    [
      "is true if the record belongs to another SidecarSet",
      podAt("sc:v2", { image: "sc:v1", imageID: "1" }, recorded("1", "other")),
      true,
    ],
    ["is false if the annotation is not JSON", podAt("sc:v2", { image: "sc:v2" }, "{"), false],
    ["is false if the annotation is a list", podAt("sc:v2", { image: "sc:v2" }, []), false],
    ["is true if the annotation is null", podAt("sc:v2", { image: "sc:v1" }, "null"), true],
    [
      "is false if Go cannot read the entry of another SidecarSet",
      podAt("sc:v2", { image: "sc:v2" }, { other: 1 }),
      false,
    ],
    [
      "is false if Go cannot read a timestamp",
      podAt("sc:v2", { image: "sc:v2" }, { ss: { updateTimestamp: "soon" } }),
      false,
    ],
    [
      "is false if an imageID is not a string",
      podAt("sc:v2", {}, { ss: { lastContainerStatuses: { sc: { imageID: 1 } } } }),
      false,
    ],
    ["is true if the entry is null", podAt("sc:v2", { image: "sc:v1" }, { ss: null, other: { revision: null } }), true],
  ])("isConsistent %s", (_, pod, expected) => {
    expect(isConsistent(pod, "ss", SIDECAR)).toBe(expected);
  });

  test("isConsistent is false if a container has no status or a status has no container", () => {
    const sc: ContainerStatus = { name: "sc", image: "sc:v1", imageID: "1" };
    expect(isConsistent(podOf({ statuses: [sc] }), "ss", SIDECAR)).toBe(false);
    expect(isConsistent(podOf({ statuses: [MAIN, sc, { name: "debug" }] }), "ss", SIDECAR)).toBe(false);
    expect(isConsistent(podOf({ statuses: [] }), "ss", new Set())).toBe(false);
  });
});

describe("isConsistent with images by digest:", () => {
  const image = `reg/sc@${DIGEST}`;
  test.each([
    ["is true for the same repository and digest", `docker-pullable://reg/sc@${DIGEST}`, true],
    ["is true without a scheme", `reg/sc@${DIGEST}`, true],
    ["is true if there is a tag beside the digest", `reg/sc:v1@${DIGEST}`, true],
    ["is false for another digest in another repository", `cri://other/sc@sha256:${"b".repeat(64)}`, false],
    ["is false for another digest", `cri://reg/sc@sha256:${"b".repeat(64)}`, false],
    ["is true without a digest and a tag", "cri://reg/sc", true],
    ["is false with a tag instead of a digest", "cri://reg/sc:v1", false],
    ["is true if text follows a second scheme", `a://reg/sc@${DIGEST}://x`, true],
    ["is false without an imageID", undefined, false],
  ])("isConsistent %s", (_, imageID, expected) => {
    const status = imageID === undefined ? {} : { imageID };
    // Digests are compared before the annotation is read, so a broken annotation has no effect.
    expect(isConsistent(podAt(image, status, "{"), "ss", SIDECAR)).toBe(expected);
  });

  test.each([
    `docker.io/library/sc@${DIGEST}`,
    `mirror.example/cache/sc@${DIGEST}`,
    `docker-pullable://mirror.example/cache/sc@${DIGEST}`,
    `mirror.example/cache/sc:v7@${DIGEST}`,
    DIGEST,
    `docker://${DIGEST}`,
  ])("equal digests are equal images in any repository: %s", (imageID) => {
    for (const name of ["sc", "sc:v1", "team/sc", "registry.example/sc"])
      expect(isConsistent(podAt(`${name}@${DIGEST}`, { imageID }, "{"), "ss", SIDECAR)).toBe(true);
  });

  test("another digest is another image, even if the status has only the digest", () => {
    const imageID = `sha256:${"b".repeat(64)}`;
    expect(isConsistent(podAt(image, { imageID }, "{"), "ss", SIDECAR)).toBe(false);
  });

  test.each([
    ["sc", "docker.io/library/sc", true],
    ["team/sc", "docker.io/team/sc", true],
    ["team/sc", "docker.io/library/sc", false],
    ["sc", "registry.example/library/sc", false],
    ["docker.io/team/sc", "team/sc", true],
  ])(
    "isConsistent compares the short name %s with the runtime's name %s if the status has only a tag: %s",
    (name, runs, expected) => {
      const status = { imageID: `${runs}:v1` };
      expect(isConsistent(podAt(`${name}:v1@${DIGEST}`, status, "{"), "ss", SIDECAR)).toBe(expected);
    },
  );

  test("isConsistent compares the tag too if the imageID has no digest", () => {
    const tagged = `reg/sc:v1@${DIGEST}`;
    const isAt = (imageID: string) => isConsistent(podAt(tagged, { imageID }, "{"), "ss", SIDECAR);
    expect([isAt("reg/sc:v1"), isAt("reg/sc:v2"), isAt("reg/sc"), isAt("other/sc:v1")]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});
