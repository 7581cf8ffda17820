import { describe, expect, test } from "vitest";
import { storedTime, utcSeconds } from "../../../shared/go/rfc3339.ts";

describe("a timestamp as Kubernetes prints it", () => {
  const rows: readonly [sentence: string, text: string, printed: string | undefined][] = [
    ["stays in UTC", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
    ["loses its fraction", "2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05Z"],
    ["loses a fraction after a comma", "2026-01-02T03:04:05,9Z", "2026-01-02T03:04:05Z"],
    ["loses its offset", "2026-01-02T03:04:05+01:30", "2026-01-02T01:34:05Z"],
    ["may get to the next day", "2026-01-31T23:30:00-01:00", "2026-02-01T00:30:00Z"],
    ["may get to midnight of the next day", "2026-01-30T23:00:00-01:00", "2026-01-31T00:00:00Z"],
    ["may get to the next year", "2025-12-31T23:59:59-00:01", "2026-01-01T00:00:59Z"],
    ["may get over the end of February", "2026-02-28T23:30:00-01:00", "2026-03-01T00:30:00Z"],
    ["may get to a leap day of the next day", "2024-02-28T23:30:00-01:00", "2024-02-29T00:30:00Z"],
    ["may get over the end of April", "2026-04-30T23:30:00-01:00", "2026-05-01T00:30:00Z"],
    ["may get to the day before", "2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00Z"],
    ["may get to a leap day", "2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z"],
    ["may get to the year before", "2026-01-01T00:00:00+00:01", "2025-12-31T23:59:00Z"],
    ["may get to the month before", "2026-05-01T00:00:00+00:01", "2026-04-30T23:59:00Z"],
    ["may get from one day of a month to another", "2026-05-15T00:00:00+23:59", "2026-05-14T00:01:00Z"],
    ["has four digits for its year", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
    ["knows the 29th of February of 2000", "2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"],
    ["knows none of 1900", "1900-02-29T00:00:00Z", undefined],
    ["knows none of 2023", "2023-02-29T00:00:00Z", undefined],
    ["knows the 31st of December", "2026-12-31T23:59:59Z", "2026-12-31T23:59:59Z"],
    ["knows no 31st of April", "2026-04-31T00:00:00Z", undefined],
    ["knows no 31st of June", "2026-06-31T00:00:00Z", undefined],
    ["knows no 31st of September", "2026-09-31T00:00:00Z", undefined],
    ["knows no 31st of November", "2026-11-31T00:00:00Z", undefined],
    ["knows no 32nd", "2026-01-32T00:00:00Z", undefined],
    ["knows no day 0", "2026-01-00T00:00:00Z", undefined],
    ["knows no month 0", "2026-00-01T00:00:00Z", undefined],
    ["knows no month 13", "2026-13-01T00:00:00Z", undefined],
    ["knows no hour 24", "2026-01-01T24:00:00Z", undefined],
    ["knows no minute 60", "2026-01-01T00:60:00Z", undefined],
    ["knows no leap second", "2026-01-01T00:00:60Z", undefined],
    ["takes an offset of a whole day", "2026-01-02T03:04:05+24:00", "2026-01-01T03:04:05Z"],
    ["takes one of a day and an hour, as Go does", "2026-01-02T00:00:00+24:60", "2025-12-31T23:00:00Z"],
    ["takes it backwards", "2026-01-02T23:00:00-24:60", "2026-01-04T00:00:00Z"],
    ["takes 60 minutes for an hour", "2026-01-02T03:04:05+00:60", "2026-01-02T02:04:05Z"],
    ["takes no offset of 25 hours", "2026-01-02T03:04:05+25:00", undefined],
    ["takes no offset of 61 minutes", "2026-01-02T03:04:05-00:61", undefined],
    ["needs a zone", "2026-01-02T03:04:05", undefined],
    ["needs a T", "2026-01-02 03:04:05Z", undefined],
    ["has nothing before it", " 2026-01-02T03:04:05Z", undefined],
    ["has nothing behind it", "2026-01-02T03:04:05Z ", undefined],
    ["needs digits after a point", "2026-01-02T03:04:05.Z", undefined],
    ["has no offset of one digit", "2026-01-02T03:04:05+1:00", undefined],
  ];
  test.each(rows)("%s", (_, text, printed) => {
    expect(utcSeconds(text)).toBe(printed);
  });
});

test("a time is stored as it is printed, Go's zero time as null", () => {
  const texts = ["2026-01-02T03:04:05+01:00", "0001-01-01T00:00:00Z", "soon"];
  expect(texts.map(storedTime)).toEqual(["2026-01-02T02:04:05Z", null, undefined]);
});
