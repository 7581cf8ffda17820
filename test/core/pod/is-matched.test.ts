import { describe, expect, test } from "vitest";
import { INJECTED_LIST_ANNOTATION, WORKING_HOT_UPGRADE_ANNOTATION } from "../../../shared/api/names.ts";
import { isMatched } from "../../../shared/core/pod/is-matched.ts";
import { isReady } from "../../../shared/core/pod/is-ready.ts";
import { hotPodOf, hotSidecarSetOf, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const injected = (list: string) => podOf({ annotations: { [INJECTED_LIST_ANNOTATION]: list } });
const pod = podOf();

describe("isMatched", () => {
  test.each([
    ["an injected, running pod", pod, true],
    ["one among several", injected("a,ss,b"), true],
    ["only exact names count", injected("sss, ss"), false],
    ["not injected", injected(""), false],
    ["finished", podOf({ phase: "Succeeded" }), false],
    ["failed", podOf({ phase: "Failed" }), false],
    ["being deleted", { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2025-01-01T00:00:00Z" } }, false],
    ["a container of the SidecarSet is missing", podOf({ spec: { containers: [{ name: "main" }] } }), false],
    [
      "a container that is an init container",
      podOf({ spec: { initContainers: [{ name: "sc" }], containers: [{ name: "main" }] } }),
      true,
    ],
  ])("%s", (_, candidate, expected) => {
    expect(isMatched(candidate, sidecarSetOf())).toBe(expected);
  });

  test("a hot upgrade needs both slots and to know which one works", () => {
    const sidecarSet = hotSidecarSetOf();
    const hot = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1");
    expect(isMatched(hot, sidecarSet)).toBe(true);
    const unknown = hotPodOf(["a", "b"], "mesh-1", { annotations: { [WORKING_HOT_UPGRADE_ANNOTATION]: "{" } });
    expect(isMatched(unknown, sidecarSet)).toBe(false);
    const half = { ...hot, spec: { ...hot.spec, containers: hot.spec.containers.slice(0, 2) } };
    expect(isMatched(half, sidecarSet)).toBe(false);
  });
});

describe("isReady", () => {
  test.each([
    ["working, the other slot empty", hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1"), true],
    ["both slots at work", hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2"), false],
    ["without an annotation the second slot works", hotPodOf(["reg/empty:1", "reg/mesh:v1"], "mesh-2"), true],
    ["not ready", hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { isReady: false }), false],
    ["pending", hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { phase: "Pending" }), false],
  ])("%s", (_, hot, expected) => {
    expect(isReady(hot, hotSidecarSetOf())).toBe(expected);
  });
});
