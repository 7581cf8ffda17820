import { describe, expect, test } from "vitest";
import { storedTime, utcSeconds } from "../../../shared/go/rfc3339.ts";

describe("utcSeconds", () => {
  const rows: readonly [sentence: string, text: string, printed: string | undefined][] = [
    ["a UTC timestamp is printed unchanged", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
    ["a fraction of a second is cut off", "2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05Z"],
    ["a fraction after a comma is cut off", "2026-01-02T03:04:05,9Z", "2026-01-02T03:04:05Z"],
    ["a time with an offset is printed in UTC", "2026-01-02T03:04:05+01:30", "2026-01-02T01:34:05Z"],
    ["an offset can move the time to the next day", "2026-01-31T23:30:00-01:00", "2026-02-01T00:30:00Z"],
    ["an offset can move the time to midnight of the next day", "2026-01-30T23:00:00-01:00", "2026-01-31T00:00:00Z"],
    ["an offset can move the time to the next year", "2025-12-31T23:59:59-00:01", "2026-01-01T00:00:59Z"],
    [
      "an offset can move the time from the end of February to March",
      "2026-02-28T23:30:00-01:00",
      "2026-03-01T00:30:00Z",
    ],
    [
      "an offset can move the time forward to February 29 of a leap year",
      "2024-02-28T23:30:00-01:00",
      "2024-02-29T00:30:00Z",
    ],
    ["an offset can move the time from the end of April to May", "2026-04-30T23:30:00-01:00", "2026-05-01T00:30:00Z"],
    ["an offset can move the time back to the day before", "2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00Z"],
    [
      "an offset can move the time back to February 29 of a leap year",
      "2024-03-01T00:30:00+01:00",
      "2024-02-29T23:30:00Z",
    ],
    ["an offset can move the time back to the year before", "2026-01-01T00:00:00+00:01", "2025-12-31T23:59:00Z"],
    ["an offset can move the time back to the month before", "2026-05-01T00:00:00+00:01", "2026-04-30T23:59:00Z"],
    ["an offset can move the time back within a month", "2026-05-15T00:00:00+23:59", "2026-05-14T00:01:00Z"],
    ["a year is printed with four digits", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
    ["February 29, 2000 is accepted", "2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"],
    ["February 29, 1900 is refused", "1900-02-29T00:00:00Z", undefined],
    ["February 29, 2023 is refused", "2023-02-29T00:00:00Z", undefined],
    ["December 31 is accepted", "2026-12-31T23:59:59Z", "2026-12-31T23:59:59Z"],
    ["April 31 is refused", "2026-04-31T00:00:00Z", undefined],
    ["June 31 is refused", "2026-06-31T00:00:00Z", undefined],
    ["September 31 is refused", "2026-09-31T00:00:00Z", undefined],
    ["November 31 is refused", "2026-11-31T00:00:00Z", undefined],
    ["day 32 is refused", "2026-01-32T00:00:00Z", undefined],
    ["day 0 is refused", "2026-01-00T00:00:00Z", undefined],
    ["month 0 is refused", "2026-00-01T00:00:00Z", undefined],
    ["month 13 is refused", "2026-13-01T00:00:00Z", undefined],
    ["hour 24 is refused", "2026-01-01T24:00:00Z", undefined],
    ["minute 60 is refused", "2026-01-01T00:60:00Z", undefined],
    ["a leap second is refused", "2026-01-01T00:00:60Z", undefined],
    ["an offset of 24 hours is accepted", "2026-01-02T03:04:05+24:00", "2026-01-01T03:04:05Z"],
    ["an offset of 24 hours and 60 minutes is accepted, as in Go", "2026-01-02T00:00:00+24:60", "2025-12-31T23:00:00Z"],
    ["a negative offset of 24 hours and 60 minutes is accepted", "2026-01-02T23:00:00-24:60", "2026-01-04T00:00:00Z"],
    ["an offset of 60 minutes counts as one hour", "2026-01-02T03:04:05+00:60", "2026-01-02T02:04:05Z"],
    ["an offset that moves the time before year 0 is refused", "0000-01-01T00:00:00+00:01", undefined],
    ["an offset that moves the time past year 9999 is refused", "9999-12-31T23:59:59-24:00", undefined],
    ["an offset within year 0 is accepted", "0000-01-01T00:01:00+00:01", "0000-01-01T00:00:00Z"],
    ["an offset within year 9999 is accepted", "9999-12-31T23:58:59-00:01", "9999-12-31T23:59:59Z"],
    ["an offset of 25 hours is refused", "2026-01-02T03:04:05+25:00", undefined],
    ["an offset of 61 minutes is refused", "2026-01-02T03:04:05-00:61", undefined],
    ["a timestamp without a zone is refused", "2026-01-02T03:04:05", undefined],
    ["a timestamp without the letter T is refused", "2026-01-02 03:04:05Z", undefined],
    ["a space before the timestamp is refused", " 2026-01-02T03:04:05Z", undefined],
    ["a space after the timestamp is refused", "2026-01-02T03:04:05Z ", undefined],
    ["a decimal point without digits is refused", "2026-01-02T03:04:05.Z", undefined],
    ["an offset with one digit for the hour is refused", "2026-01-02T03:04:05+1:00", undefined],
  ];
  test.each(rows)("%s", (_, text, printed) => {
    expect(utcSeconds(text)).toBe(printed);
  });
});

test("storedTime returns the printed time, null for Go's zero time, and undefined for an invalid time", () => {
  const texts = ["2026-01-02T03:04:05+01:00", "0001-01-01T00:00:00Z", "soon"];
  expect(texts.map(storedTime)).toEqual(["2026-01-02T02:04:05Z", null, undefined]);
});
