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
  test("the seconds between two times agree with JavaScript's Date", () => {
    assert(
      property(anyTime, anyTime, (from, to) => {
        expect(secondsBetween(text(from), text(to))).toBe((Date.parse(text(to)) - Date.parse(text(from))) / 1000);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["the offset of a time counts", "2025-01-01T01:00:00+01:00", "2025-01-01T00:00:01Z", 1],
    ["fractions of a second are cut off", "2025-01-01T00:00:00.9Z", "2025-01-01T00:00:01Z", 1],
    ["an invalid end time has no difference", "2025-01-01T00:00:00Z", "soon", undefined],
    ["an invalid start time has no difference", "soon", "2025-01-01T00:00:01Z", undefined],
  ])("%s", (_, from, to, expected) => {
    expect(secondsBetween(from, to)).toBe(expected);
  });
});

describe("addSeconds", () => {
  test("a time plus seconds agrees with JavaScript's Date", () => {
    assert(
      property(anyTime, anyTime, (from, to) => {
        const seconds = (Date.parse(text(to)) - Date.parse(text(from))) / 1000;
        expect(addSeconds(text(from), seconds)).toBe(text(to));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    [
      "3600 seconds after 23:00 on February 28, 2024 is February 29",
      "2024-02-28T23:00:00Z",
      3600,
      "2024-02-29T00:00:00Z",
    ],
    ["3600 seconds after 23:00 on February 28, 2100 is March 1", "2100-02-28T23:00:00Z", 3600, "2100-03-01T00:00:00Z"],
    [
      "3600 seconds after 23:00 on February 28, 2000 is February 29",
      "2000-02-28T23:00:00Z",
      3600,
      "2000-02-29T00:00:00Z",
    ],
    ["one second can lead to the next year", "2025-12-31T23:59:59Z", 1, "2026-01-01T00:00:00Z"],
    ["an invalid time plus seconds is undefined", "soon", 1, undefined],
  ])("%s", (_, time, seconds, expected) => {
    expect(addSeconds(time, seconds)).toBe(expected);
  });
});

describe("storedSeconds", () => {
  test("differences of stored seconds agree with JavaScript's Date over 500 years", () => {
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

  test("two forms of one time give the same number, and an invalid time gives undefined", () => {
    const [printed, other] = ["2026-01-02T02:04:05Z", "2026-01-02T03:04:05.9+01:00"].map(storedSeconds);
    expect(printed).toBeGreaterThan(0);
    expect(other).toBe(printed);
    expect(["soon", "2026-01-02T03:04:0xZ", ""].map(storedSeconds)).toEqual([undefined, undefined, undefined]);
  });
});
