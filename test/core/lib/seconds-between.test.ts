import { assert, date, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { secondsBetween } from "../../../shared/core/lib/seconds-between.ts";

const anyTime = date({
  min: new Date("0001-01-01T00:00:00Z"),
  max: new Date("9999-12-31T00:00:00Z"),
  noInvalidDate: true,
});
const text = (time: Date) => `${time.toISOString().slice(0, 19)}Z`;

describe("secondsBetween", () => {
  test("is what a calendar says", () => {
    assert(
      property(anyTime, anyTime, (from, to) => {
        expect(secondsBetween(text(from), text(to))).toBe((Date.parse(text(to)) - Date.parse(text(from))) / 1000);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["offsets count", "2025-01-01T01:00:00+01:00", "2025-01-01T00:00:01Z", 1],
    ["fractions are cut off", "2025-01-01T00:00:00.9Z", "2025-01-01T00:00:01Z", 1],
    ["no time to come", "2025-01-01T00:00:00Z", "soon", undefined],
    ["no time", "soon", "2025-01-01T00:00:01Z", undefined],
  ])("%s", (_, from, to, expected) => {
    expect(secondsBetween(from, to)).toBe(expected);
  });
});
