import { describe, expect, it } from "vitest";
import { isRawNumber, parseJson } from "../../../shared/go/json/json-number.ts";

describe("numbers in JSON", () => {
  const kept: readonly (readonly [string, string])[] = [
    ["an integer beyond 2^53", "9007199254740993"],
    ["the smallest int64", "-9223372036854775808"],
    ["an integer beyond int64", "123456789012345678901234567890"],
    ["a number beyond float64", "1e400"],
    ["a number beyond float64 with a sign, a fraction and an exponent", "-1.5E+0400"],
    ["a number of 400 digits and a fraction", `${"9".repeat(400)}.5`],
  ];
  it.each(kept)("parseJson keeps %s as text", (_what, text) => {
    const value = parseJson(`{"a":[${text}]}`) as { readonly a: readonly unknown[] };
    expect(isRawNumber(value.a[0])).toBe(true);
    expect(JSON.stringify(value)).toBe(`{"a":[${text}]}`);
  });

  const places = [
    "9007199254740993",
    " 9007199254740993",
    "[0,9007199254740993]",
    "[ \n9007199254740993]",
    '{"a":9007199254740993}',
  ];
  it.each(places)("parseJson keeps the large number in %j", (text) => {
    expect(JSON.stringify(parseJson(text))).toBe(text.replace(/\s/g, ""));
    expect(JSON.stringify(parseJson(text))).toContain("9007199254740993");
  });

  it("parseJson keeps a large number at every distance from the beginning of the text", () => {
    for (let distance = 0; distance < 40; distance++) {
      const text = `{"${"a".repeat(distance)}":9007199254740993}`;
      expect(JSON.stringify(parseJson(text))).toBe(text);
    }
  });

  const plain: readonly (readonly [string, string, unknown])[] = [
    ["the largest safe integer", "9007199254740991", 9007199254740991],
    ["a fraction with more digits than float64 has", "0.10000000000000000000001", 0.1],
    ["digits inside a string", '"9007199254740993"', "9007199254740993"],
    ["null", "null", null],
  ];
  it.each(plain)("parseJson reads %s as JSON.parse does", (_what, text, value) => expect(parseJson(text)).toBe(value));

  it("parseJson throws a SyntaxError for invalid JSON", () => expect(() => parseJson("{")).toThrow(SyntaxError));
});
