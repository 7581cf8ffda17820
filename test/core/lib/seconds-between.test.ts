import { assert, date, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { addSeconds, secondsBetween, storedSeconds } from "../../../shared/go/seconds-between.ts";

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

describe("addSeconds", () => {
  test("is what a calendar says", () => {
    assert(
      property(anyTime, anyTime, (from, to) => {
        const seconds = (Date.parse(text(to)) - Date.parse(text(from))) / 1000;
        expect(addSeconds(text(from), seconds)).toBe(text(to));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["a leap day", "2024-02-28T23:00:00Z", 3600, "2024-02-29T00:00:00Z"],
    ["no leap day in a century", "2100-02-28T23:00:00Z", 3600, "2100-03-01T00:00:00Z"],
    ["one in every fourth", "2000-02-28T23:00:00Z", 3600, "2000-02-29T00:00:00Z"],
    ["over the end of a year", "2025-12-31T23:59:59Z", 1, "2026-01-01T00:00:00Z"],
    ["no time", "soon", 1, undefined],
  ])("%s", (_, time, seconds, expected) => {
    expect(addSeconds(time, seconds)).toBe(expected);
  });
});

describe("what a pod's time is as a number", () => {
  test("is as many seconds apart as JavaScript's own clock says, over 500 years", () => {
    const at = (seconds: number) =>
      storedSeconds(`${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`) ?? Number.NaN;
    const day = 86_400;
    const since = at(0);
    let looked = 0;
    for (let seconds = -70 * 365 * day + 3_661; seconds < 430 * 365 * day; seconds += day - 61) {
      if (at(seconds) - since !== seconds) expect([seconds, at(seconds) - since]).toEqual([seconds, seconds]);
      looked++;
    }
    expect(looked).toBeGreaterThan(180_000);
  });

  test("is the same however it is written, and none where it is no time", () => {
    const [printed, other] = ["2026-01-02T02:04:05Z", "2026-01-02T03:04:05.9+01:00"].map(storedSeconds);
    expect(printed).toBeGreaterThan(0);
    expect(other).toBe(printed);
    expect(["soon", "2026-01-02T03:04:0xZ", ""].map(storedSeconds)).toEqual([undefined, undefined, undefined]);
  });
});
