import { describe, expect, test } from "vitest";
import type { SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { calculateStatus, isStatusChanged } from "../../../shared/core/rollout/status.ts";
import { NEW_HASH, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const sidecarSet = sidecarSetOf();
const states = [
  podOf({ name: "old" }),
  podOf({ name: "old-down", isReady: false }),
  podOf({ name: "new", hash: NEW_HASH }),
  podOf({ name: "new-down", hash: NEW_HASH, isReady: false }),
].map((pod) => podStateOf(pod, sidecarSet, undefined));

describe("calculateStatus", () => {
  test("counts", () => {
    expect(calculateStatus(sidecarSet, states, { name: "r", collisionCount: 1 })).toEqual({
      observedGeneration: 2,
      matchedPods: 4,
      updatedPods: 2,
      readyPods: 2,
      updatedReadyPods: 1,
      latestRevision: "r",
      collisionCount: 1,
    });
  });

  test("leaves out zeros as the API does, but not the three counts and the collision count", () => {
    const { generation: _, ...metadata } = sidecarSet.metadata ?? {};
    expect(calculateStatus({ ...sidecarSet, metadata }, [], { name: "", collisionCount: 0 })).toEqual({
      matchedPods: 0,
      updatedPods: 0,
      readyPods: 0,
      collisionCount: 0,
    });
  });
});

describe("isStatusChanged", () => {
  const stored: SidecarSetStatus = {
    observedGeneration: 2,
    matchedPods: 3,
    updatedPods: 0,
    readyPods: 3,
    latestRevision: "r",
    collisionCount: 0,
  };
  test.each([
    ["the same", {}, false],
    ["a count that is absent is zero", { updatedReadyPods: 0 }, false],
    ["a count differs", { updatedPods: 1 }, true],
    ["a new generation was seen", { observedGeneration: 3 }, true],
    ["an older generation does not count", { observedGeneration: 1 }, false],
    ["another revision", { latestRevision: "s" }, true],
    ["a collision", { collisionCount: 1 }, true],
  ])("%s", (_, change, expected) => {
    expect(isStatusChanged(stored, { ...stored, ...change })).toBe(expected);
  });

  test("a first status is written even if it is all zeros", () => {
    expect(isStatusChanged(undefined, { matchedPods: 0, updatedPods: 0, readyPods: 0, collisionCount: 0 })).toBe(true);
  });
});
