import { describe, expect, test } from "vitest";
import type { SidecarSet, SidecarSetStatus, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { AUDIT_MINUTES, isPassDue, isSettled } from "../../../shared/core/rollout/queue/work.ts";

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

describe("isSettled:", () => {
  test.each<[string, SidecarSetStatus, UpdateStrategy, boolean]>([
    ["without a status is not settled", {}, {}, false],
    ["with all pods updated and ready is settled", DONE, {}, true],
    ["without pods is settled", { observedGeneration: 3, latestRevision: "a-1" }, {}, true],
    ["that changed after the last pass is not settled", { ...DONE, observedGeneration: 2 }, {}, false],
    ["without a revision is not settled", { ...DONE, latestRevision: "" }, {}, false],
    ["with a pod of the old release is not settled", { ...DONE, updatedPods: 9, updatedReadyPods: 9 }, {}, false],
    ["with an updated pod that is not ready is not settled", { ...DONE, updatedReadyPods: 9 }, {}, false],
    ["with an old pod that is not ready is settled", { ...DONE, readyPods: 9 }, {}, true],
    [
      "with all pods outside its partition updated is settled",
      { ...DONE, updatedPods: 7, updatedReadyPods: 7 },
      { partition: 3 },
      true,
    ],
    [
      "with all pods outside its partition of 50% updated is settled",
      { ...DONE, updatedPods: 5, updatedReadyPods: 5 },
      { partition: "50%" },
      true,
    ],
    [
      "with too few updated pods outside its partition is not settled",
      { ...DONE, updatedPods: 6, updatedReadyPods: 6 },
      { partition: 3 },
      false,
    ],
    ["that is paused is settled", { ...DONE, updatedPods: 1, updatedReadyPods: 0 }, { paused: true }, true],
    ["that was paused after the last pass is not settled", { ...DONE, observedGeneration: 2 }, { paused: true }, false],
    ["with the type NotUpdate is settled", { ...DONE, updatedPods: 1 }, { type: "NotUpdate" }, true],
  ])("a SidecarSet %s", (_, status, strategy, expected) => {
    expect(isSettled(sidecarSet(status, strategy))).toBe(expected);
  });
});

test("a SidecarSet that is not settled is due every minute, and settled ones are spread over the audit minutes", () => {
  const minutes = Array.from({ length: 2 * AUDIT_MINUTES }, (_, index) => 29_000_000 + index);
  const turns = (set: SidecarSet) => minutes.filter((minute) => isPassDue(set, minute));
  expect(turns(sidecarSet({}))).toHaveLength(2 * AUDIT_MINUTES);
  const names = Array.from({ length: 100 }, (_, index) => `set-${index}`);
  const audits = names.map((name) => turns(sidecarSet(DONE, {}, name)));
  for (const [first = 0, second, ...others] of audits) expect([second, others]).toEqual([first + AUDIT_MINUTES, []]);
  expect(new Set(audits.map(([first]) => first)).size).toBe(AUDIT_MINUTES);
});
