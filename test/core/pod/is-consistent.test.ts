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

describe("isConsistent, images by tag", () => {
  test.each([
    ["never upgraded: whatever the status says", podAt("sc:v2", { image: "sc:v1", imageID: "1" }), true],
    [
      "another imageID than before: whatever the text",
      podAt("sc:v2", { image: "sc:v1", imageID: "2" }, recorded("1")),
      true,
    ],
    [
      "the imageID from before and the old text",
      podAt("sc:v2", { image: "sc:v1", imageID: "1" }, recorded("1")),
      false,
    ],
    ["the imageID from before and the new text", podAt("sc:v2", { image: "sc:v2", imageID: "1" }, recorded("1")), true],
    ["no imageID before and none now", podAt("sc:v2", { image: "sc:v1" }, recorded()), false],
    ["recorded for another SidecarSet", podAt("sc:v2", { image: "sc:v1", imageID: "1" }, recorded("1", "other")), true],
    ["an annotation that is no JSON", podAt("sc:v2", { image: "sc:v2" }, "{"), false],
    ["an annotation that is a list", podAt("sc:v2", { image: "sc:v2" }, []), false],
    ["an annotation that is null", podAt("sc:v2", { image: "sc:v1" }, "null"), true],
    ["an entry of another SidecarSet that Go cannot read", podAt("sc:v2", { image: "sc:v2" }, { other: 1 }), false],
    ["a timestamp that Go cannot read", podAt("sc:v2", { image: "sc:v2" }, { ss: { updateTimestamp: "soon" } }), false],
    [
      "an imageID that is no text",
      podAt("sc:v2", {}, { ss: { lastContainerStatuses: { sc: { imageID: 1 } } } }),
      false,
    ],
    ["an entry that is null", podAt("sc:v2", { image: "sc:v1" }, { ss: null, other: { revision: null } }), true],
  ])("%s: %#", (_, pod, expected) => {
    expect(isConsistent(pod, "ss", SIDECAR)).toBe(expected);
  });

  test("a container without a status, or a status too many, is never consistent", () => {
    const sc: ContainerStatus = { name: "sc", image: "sc:v1", imageID: "1" };
    expect(isConsistent(podOf({ statuses: [sc] }), "ss", SIDECAR)).toBe(false);
    expect(isConsistent(podOf({ statuses: [MAIN, sc, { name: "debug" }] }), "ss", SIDECAR)).toBe(false);
    expect(isConsistent(podOf({ statuses: [] }), "ss", new Set())).toBe(false);
  });
});

describe("isConsistent, images by digest", () => {
  const image = `reg/sc@${DIGEST}`;
  test.each([
    ["the same repository and digest", `docker-pullable://reg/sc@${DIGEST}`, true],
    ["without a scheme", `reg/sc@${DIGEST}`, true],
    ["a tag beside the digest does not count", `reg/sc:v1@${DIGEST}`, true],
    ["another repository", `cri://other/sc@${DIGEST}`, false],
    ["another digest", `cri://reg/sc@sha256:${"b".repeat(64)}`, false],
    ["no digest, and no tag either", "cri://reg/sc", true],
    ["no digest, but a tag", "cri://reg/sc:v1", false],
    ["what follows a second scheme is cut off", `a://reg/sc@${DIGEST}://x`, true],
    ["nothing yet", undefined, false],
  ])("%s", (_, imageID, expected) => {
    const status = imageID === undefined ? {} : { imageID };
    // Digests are compared before the annotation is looked at, so a broken one does not matter.
    expect(isConsistent(podAt(image, status, "{"), "ss", SIDECAR)).toBe(expected);
  });

  test.each([
    ["sc", "docker.io/library/sc", true],
    ["sc:v1", "docker.io/library/sc", true],
    ["team/sc", "docker.io/team/sc", true],
    ["team/sc", "docker.io/library/sc", false],
    ["sc", "registry.example/library/sc", false],
    ["docker.io/team/sc", "team/sc", true],
  ])("a short name is the runtime's full name", (name, runs, expected) => {
    const imageID = `${runs}@${DIGEST}`;
    expect(isConsistent(podAt(`${name}@${DIGEST}`, { imageID }, "{"), "ss", SIDECAR)).toBe(expected);
  });

  test("and tag, where the status says no digest", () => {
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
