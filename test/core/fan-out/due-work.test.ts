import { describe, expect, test } from "vitest";
import type { SidecarSet, SidecarSetStatus, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { AUDIT_MINUTES, isDue, isSettled } from "../../../shared/core/rollout/queue/due-work.ts";

const DONE: SidecarSetStatus = {
  observedGeneration: 3,
  latestRevision: "a-1",
  matchedPods: 10,
  updatedPods: 10,
  readyPods: 10,
  updatedReadyPods: 10,
};

function sidecarSet(status: SidecarSetStatus, updateStrategy: UpdateStrategy = {}, name = "a"): SidecarSet {
  return { metadata: { name, generation: 3 }, spec: { updateStrategy }, status };
}

describe("a SidecarSet is settled", () => {
  test.each<[string, SidecarSetStatus, UpdateStrategy, boolean]>([
    ["that nobody looked at", {}, {}, false],
    ["whose pods are all updated and ready", DONE, {}, true],
    ["without pods", { observedGeneration: 3, latestRevision: "a-1" }, {}, true],
    ["that has changed since", { ...DONE, observedGeneration: 2 }, {}, false],
    ["without a revision", { ...DONE, latestRevision: "" }, {}, false],
    ["with an old pod", { ...DONE, updatedPods: 9, updatedReadyPods: 9 }, {}, false],
    ["with an updated pod that is not ready", { ...DONE, updatedReadyPods: 9 }, {}, false],
    ["with an old pod that is not ready", { ...DONE, readyPods: 9 }, {}, true],
    ["up to its partition", { ...DONE, updatedPods: 7, updatedReadyPods: 7 }, { partition: 3 }, true],
    ["up to its partition in percent", { ...DONE, updatedPods: 5, updatedReadyPods: 5 }, { partition: "50%" }, true],
    ["short of its partition", { ...DONE, updatedPods: 6, updatedReadyPods: 6 }, { partition: 3 }, false],
    ["that is paused", { ...DONE, updatedPods: 1, updatedReadyPods: 0 }, { paused: true }, true],
    ["that was paused a moment ago", { ...DONE, observedGeneration: 2 }, { paused: true }, false],
    ["that is never updated", { ...DONE, updatedPods: 1 }, { type: "NotUpdate" }, true],
  ])("%s", (_, status, strategy, expected) => {
    expect(isSettled(sidecarSet(status, strategy))).toBe(expected);
  });
});

test("one that is not settled gets its turn every minute, a settled one every few, not all in the same", () => {
  const minutes = Array.from({ length: 2 * AUDIT_MINUTES }, (_, index) => 29_000_000 + index);
  const turns = (set: SidecarSet) => minutes.filter((minute) => isDue(set, minute));
  expect(turns(sidecarSet({}))).toHaveLength(2 * AUDIT_MINUTES);
  const names = Array.from({ length: 100 }, (_, index) => `set-${index}`);
  const audits = names.map((name) => turns(sidecarSet(DONE, {}, name)));
  for (const [first = 0, second, ...others] of audits) expect([second, others]).toEqual([first + AUDIT_MINUTES, []]);
  expect(new Set(audits.map(([first]) => first)).size).toBe(AUDIT_MINUTES);
});
