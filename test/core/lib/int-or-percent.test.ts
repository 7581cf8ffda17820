import { describe, expect, test } from "vitest";
import { scaleIntOrPercent, scaleIntOrPercentLegacy } from "../../../shared/go/int-or-percent.ts";

describe("scaleIntOrPercent", () => {
  test.each([
    ["a number is what it is", 3, 10, 3],
    ["even a negative one", -2, 10, -2],
    ["a share is rounded up", "33%", 10, 4],
    ["decimals are allowed", "12.5%", 8, 1],
    ["so are a leading point and a sign", "+.5%", 1000, 5],
    ["and an exponent", "1e1%", 100, 10],
    ["a number without a percent sign is not read", "5", 10, undefined],
    ["nor is one with another sign", "50x", 10, undefined],
    ["nor is a word", "abc%", 10, undefined],
    ["nor is nothing", "%", 10, undefined],
    ["nor is infinity", "Inf%", 10, undefined],
  ])("%s", (_, value, total, expected) => {
    expect(scaleIntOrPercent(value, total)).toBe(expected);
  });
});

describe("scaleIntOrPercentLegacy", () => {
  test.each([
    ["a number is what it is", 0, 10, 0],
    ["text is a percentage", "25%", 7, 2],
    ["with or without its sign", "5", 100, 5],
    ["wherever the sign stands", "%5%", 100, 5],
    ["a plus is allowed", "+10%", 10, 1],
    ["decimals are not", "7.5%", 100, undefined],
    ["nor is a word", "abc", 10, undefined],
    ["nor what does not fit into 64 bits", "9223372036854775808", 10, undefined],
  ])("%s", (_, value, total, expected) => {
    expect(scaleIntOrPercentLegacy(value, total)).toBe(expected);
  });
});
