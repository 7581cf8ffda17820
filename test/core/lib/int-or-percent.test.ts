import { describe, expect, test } from "vitest";
import { scaleIntOrPercent, scaleIntOrPercentLegacy } from "../../../shared/go/int-or-percent.ts";

describe("scaleIntOrPercent", () => {
  test.each([
    ["a number is returned unchanged", 3, 10, 3],
    ["a negative number is returned unchanged", -2, 10, -2],
    ["33% of 10 is rounded up to 4", "33%", 10, 4],
    ["a percentage may have decimals", "12.5%", 8, 1],
    ["a percentage may start with a sign and a decimal point", "+.5%", 1000, 5],
    ["a percentage may have an exponent", "1e1%", 100, 10],
    ["a number in a string without a percent sign is refused", "5", 10, undefined],
    ["a number with a letter instead of the percent sign is refused", "50x", 10, undefined],
    ["a word before the percent sign is refused", "abc%", 10, undefined],
    ["a percent sign alone is refused", "%", 10, undefined],
    ["an infinite percentage is refused", "Inf%", 10, undefined],
  ])("%s", (_, value, total, expected) => {
    expect(scaleIntOrPercent(value, total)).toBe(expected);
  });
});

describe("scaleIntOrPercentLegacy", () => {
  test.each([
    ["the legacy function returns a number unchanged", 0, 10, 0],
    ["the legacy function rounds 25% of 7 up to 2", "25%", 7, 2],
    ["the legacy function reads a string without a percent sign as a percentage", "5", 100, 5],
    ["the legacy function accepts percent signs at any place", "%5%", 100, 5],
    ["the legacy function accepts a plus sign", "+10%", 10, 1],
    ["the legacy function refuses decimals", "7.5%", 100, undefined],
    ["the legacy function refuses a word", "abc", 10, undefined],
    ["the legacy function refuses a number that does not fit into 64 bits", "9223372036854775808", 10, undefined],
  ])("%s", (_, value, total, expected) => {
    expect(scaleIntOrPercentLegacy(value, total)).toBe(expected);
  });
});
