import { describe, expect, test } from "vitest";
import type { SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { calculateStatus, isStatusChanged } from "../../../shared/core/rollout/decide.ts";
import { NEW_HASH, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const sidecarSet = sidecarSetOf();
const states = [
  podOf({ name: "old" }),
  podOf({ name: "old-down", isReady: false }),
  podOf({ name: "new", hash: NEW_HASH }),
  podOf({ name: "new-down", hash: NEW_HASH, isReady: false }),
].map((pod) => podStateOf(pod, sidecarSet, undefined));

describe("calculateStatus:", () => {
  test("calculateStatus counts matched, updated and ready pods", () => {
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

  test("calculateStatus leaves out zeros like the API, except three counts and the collision count", () => {
    const { generation: _, ...metadata } = sidecarSet.metadata ?? {};
    expect(calculateStatus({ ...sidecarSet, metadata }, [], { name: "", collisionCount: 0 })).toEqual({
      matchedPods: 0,
      updatedPods: 0,
      readyPods: 0,
      collisionCount: 0,
    });
  });
});

describe("isStatusChanged:", () => {
  const stored: SidecarSetStatus = {
    observedGeneration: 2,
    matchedPods: 3,
    updatedPods: 0,
    readyPods: 3,
    latestRevision: "r",
    collisionCount: 0,
  };
  test.each([
    ["is false for the same status", {}, false],
    ["is false if an absent count is 0", { updatedReadyPods: 0 }, false],
    ["is true if a count differs", { updatedPods: 1 }, true],
    ["is true if a new generation was observed", { observedGeneration: 3 }, true],
    ["is false if the observed generation is older", { observedGeneration: 1 }, false],
    ["is true if the revision differs", { latestRevision: "s" }, true],
    ["is true if the collision count differs", { collisionCount: 1 }, true],
  ])("isStatusChanged %s", (_, change, expected) => {
    expect(isStatusChanged(stored, { ...stored, ...change })).toBe(expected);
  });

  test("isStatusChanged is true for a first status of zeros", () => {
    expect(isStatusChanged(undefined, { matchedPods: 0, updatedPods: 0, readyPods: 0, collisionCount: 0 })).toBe(true);
  });
});
