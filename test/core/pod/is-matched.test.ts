import { describe, expect, test } from "vitest";
import { INJECTED_LIST_ANNOTATION, WORKING_HOT_UPGRADE_ANNOTATION } from "../../../shared/api/names.ts";
import { isMatched } from "../../../shared/core/pod/is-matched.ts";
import { isReady } from "../../../shared/core/pod/is-ready.ts";
import { hotPodOf, hotSidecarSetOf, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const injected = (list: string) => podOf({ annotations: { [INJECTED_LIST_ANNOTATION]: list } });
const pod = podOf();

describe("isMatched:", () => {
  test.each([
    ["is true for an injected, running pod", pod, true],
    ["is true if the injected list has several names", injected("a,ss,b"), true],
    ["is false if the injected list has only similar names", injected("sss, ss"), false],
    ["is false for a pod that was not injected", injected(""), false],
    ["is false for a succeeded pod", podOf({ phase: "Succeeded" }), false],
    ["is false for a failed pod", podOf({ phase: "Failed" }), false],
    [
      "is false for a pod that is being deleted",
      { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2025-01-01T00:00:00Z" } },
      false,
    ],
    [
      "is false if the pod lacks a container of the SidecarSet",
      podOf({ spec: { containers: [{ name: "main" }] } }),
      false,
    ],
    [
      "is true if the container is an init container of the pod",
      podOf({ spec: { initContainers: [{ name: "sc" }], containers: [{ name: "main" }] } }),
      true,
    ],
  ])("isMatched %s", (_, candidate, expected) => {
    expect(isMatched(candidate, sidecarSetOf())).toBe(expected);
  });

  test("a hot-upgrade pod is matched only with both slots and a readable annotation of the working one", () => {
    const sidecarSet = hotSidecarSetOf();
    const hot = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1");
    expect(isMatched(hot, sidecarSet)).toBe(true);
    const unknown = hotPodOf(["a", "b"], "mesh-1", { annotations: { [WORKING_HOT_UPGRADE_ANNOTATION]: "{" } });
    expect(isMatched(unknown, sidecarSet)).toBe(false);
    const half = { ...hot, spec: { ...hot.spec, containers: hot.spec.containers.slice(0, 2) } };
    expect(isMatched(half, sidecarSet)).toBe(false);
  });
});

describe("isReady of a hot-upgrade pod:", () => {
  test.each([
    ["is true if one slot works and the other is empty", hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1"), true],
    ["is false while both slots have an image", hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2"), false],
    ["is true if the second slot works", hotPodOf(["reg/empty:1", "reg/mesh:v1"], "mesh-2"), true],
    [
      "is false for a pod that is not ready",
      hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { isReady: false }),
      false,
    ],
    ["is false for a pending pod", hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { phase: "Pending" }), false],
  ])("isReady %s", (_, hot, expected) => {
    expect(isReady(hot, hotSidecarSetOf())).toBe(expected);
  });
});
