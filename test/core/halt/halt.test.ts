import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { haltOf } from "../../../shared/core/halt/halt.ts";

const set = (value?: string): SidecarSet => ({
  metadata: {
    name: "agent",
    ...(value === undefined ? {} : { annotations: { "sidecarset.kruise.io/halt-on": value } }),
  },
  spec: {},
});

/** Pods that fail, by the minute in which each was updated; null: nobody knows. */
const failing = (...minutes: readonly (number | null)[]) =>
  minutes.map((minute, index) => ({
    namespace: "shop",
    name: `web-${index}`,
    why: "agent: CrashLoopBackOff",
    ...(minute === null ? {} : { updatedAt: new Date(minute * 60_000).toISOString() }),
  }));

test.each<[string, string | undefined, readonly (number | null)[], number, boolean]>([
  ["nothing is said", undefined, [0, 0, 0], 3, false],
  ["as many fail as may", "3", [0, 0, 0], 10, false],
  ["one more fails", "3", [0, 0, 0, 0], 10, true],
  ["none may", "0", [0], 10, true],
  ["none fails", "0", [], 10, false],
  ["as large a share fails as may", "10%", [0], 10, false],
  ["a larger share fails", "10%", [0, 0], 10, true],
  ["a larger share of few fails", "10%", [0], 2, true],
  ["all are updated, and none fails", "0%", [], 0, false],
  ["too many fail that were updated together", "1 within 5m", [0, 4], 10, true],
  ["they were updated one after the other", "1 within 5m", [0, 6, 12], 10, false],
  ["two of them were updated together", "1 within 5m", [0, 6, 11], 10, true],
  ["nobody knows when they were updated", "1 within 5m", [null, null], 10, true],
  ["a share fails within hours", "10% within 1h", [0, 59], 10, true],
  ["a share fails over days", "10% within 1h", [0, 61], 10, false],
])("when %s", (...[, value, minutes, updated, isHalted]) => {
  expect(haltOf(set(value), { failing: failing(...minutes), updated }) !== undefined).toBe(isHalted);
});

describe("what cannot be read stops it, and says so", () => {
  test.each(["", "many", "10 %", "-1", "1.5", "3 within", "3 within 5", "3 within 5d", "10%5m"])("%j", (value) => {
    expect(haltOf(set(value), { failing: [], updated: 0 })).toContain("write for example 3, 10%");
  });
});

test("the sentence has the numbers", () => {
  expect(haltOf(set("1"), { failing: failing(0, 0), updated: 4 })).toBe(
    "2 of 4 updated pods fail, and sidecarset.kruise.io/halt-on is 1: mend the image, or go back",
  );
});
