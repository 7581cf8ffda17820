/** When a rollout stops, and who has a say about it. */
import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { haltOf } from "../../../shared/core/rollout/halt/halt.ts";

const set = (value?: string): SidecarSet => ({
  metadata: {
    name: "agent",
    ...(value === undefined ? {} : { annotations: { "sidecarset.kruise.io/halt-on": value } }),
  },
  spec: {},
});

const atMinute = (minute: number, namespace = "shop") => ({
  namespace,
  updatedAt: new Date(minute * 60_000).toISOString(),
});

/** Pods that fail, by the minute in which each was updated. */
const failing = (...minutes: readonly number[]) => minutes.map((minute) => atMinute(minute));

test.each<[string, string | undefined, readonly number[], number, boolean]>([
  ["nothing is said", undefined, [0, 0, 0], 3, false],
  ["as many fail as may", "3", [0, 0, 0], 10, false],
  ["one more fails", "3", [0, 0, 0, 0], 10, true],
  ["none may", "0", [0], 10, true],
  ["none fails", "0", [], 10, false],
  ["as large a share fails as may", "10%", [0], 10, false],
  ["a larger share fails", "10%", [0, 0], 10, true],
  ["a larger share of few fails", "10%", [0], 2, true],
  ["a share is no whole number, and so many fail", "15%", [0], 10, false],
  ["a share is no whole number, and one more fails", "15%", [0, 0], 10, true],
  ["all are updated, and none fails", "0%", [], 0, false],
  ["too many fail that were updated together", "1 within 5m", [0, 4], 10, true],
  ["they were updated one after the other", "1 within 5m", [0, 6, 12], 10, false],
  ["two of them were updated together", "1 within 5m", [0, 6, 11], 10, true],
  ["a share fails within hours", "10% within 1h", [0, 59], 10, true],
  ["a share fails over days", "10% within 1h", [0, 61], 10, false],
])("when %s", (...[, value, minutes, upgraded, isHalted]) => {
  const testimony = { witnesses: failing(...minutes), upgraded, namespaces: 1 } as const;
  expect(haltOf(set(value), testimony) !== undefined).toBe(isHalted);
});

describe("where pods of several namespaces match", () => {
  const times = (count: number, namespace: string, minute = 0) => Array(count).fill(atMinute(minute, namespace));

  test.each<[string, string, readonly ReturnType<typeof atMinute>[], boolean]>([
    ["one of them alone never stops it", "3", times(99, "evil"), false],
    ["not even where none may fail", "0", times(99, "evil"), false],
    ["nor by a share", "1%", times(100, "evil"), false],
    ["nor within a time", "3 within 5m", times(99, "evil"), false],
    ["two stop it where none may fail", "0", [...times(1, "a"), ...times(1, "b")], true],
    ["two stop it, each with its half", "3", [...times(2, "a"), ...times(2, "b")], true],
    ["many count for a half, not for more", "3", [...times(9, "a"), ...times(1, "b")], false],
    ["many namespaces stop it with one pod each", "3", ["a", "b", "c", "d"].flatMap((one) => times(1, one)), true],
    ["at another time it is another count", "3 within 5m", [...times(9, "a"), ...times(2, "b", 60)], false],
    ["at the same time it is the same", "3 within 5m", [...times(9, "a", 58), ...times(2, "b", 60)], true],
    [
      "those that are long past do not count",
      "3 within 5m",
      [...times(9, "b"), ...times(2, "a", 58), ...times(1, "b", 60)],
      false,
    ],
  ])("%s", (_, value, witnesses, isHalted) => {
    expect(haltOf(set(value), { witnesses, upgraded: 100, namespaces: 2 }) !== undefined).toBe(isHalted);
  });
});

describe("what cannot be read stops it, and says so", () => {
  test.each(["", "many", "10 %", "-1", "1.5", "3 within", "3 within 5", "3 within 5d", "10%5m"])("%j", (value) => {
    const nobody = { witnesses: [], upgraded: 0, namespaces: 1 } as const;
    expect(haltOf(set(value), nobody)).toContain("write for example 3, 10%");
  });
});

test("the sentence has the numbers", () => {
  expect(haltOf(set("1"), { witnesses: failing(0, 0), upgraded: 4, namespaces: 1 })).toBe(
    "2 of 4 updated pods fail, and sidecarset.kruise.io/halt-on is 1: fix the image, or go back",
  );
});
