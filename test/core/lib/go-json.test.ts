import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareUtf8, goJson, sortedGoJson } from "../../../shared/go/json/go-json.ts";
import { parseJson } from "../../../shared/go/json/json-number.ts";

describe("JSON as Go prints it", () => {
  const rows: readonly (readonly [string, unknown, string])[] = [
    ["keys keep their order", { b: 1, a: 2 }, '{"b":1,"a":2}'],
    ["an undefined member is left out", { a: undefined, b: null }, '{"b":null}'],
    ["undefined alone is printed as null", undefined, "null"],
    ["HTML characters are escaped", "<a href='&'>", "\"\\u003ca href='\\u0026'\\u003e\""],
    ["HTML characters in keys are escaped", { "<": "&" }, '{"\\u003c":"\\u0026"}'],
    ["line separators are escaped", "\u2028\u2029", '"\\u2028\\u2029"'],
    [
      "control characters are printed as short or four-digit escapes",
      "\b\f\n\r\t\u0000\u001f",
      '"\\b\\f\\n\\r\\t\\u0000\\u001f"',
    ],
    ["DEL and characters beyond ASCII are not escaped", "\u007fé日😀", '"\u007fé日😀"'],
    ["half a surrogate pair is replaced", "a\ud800b\udc00", '"a\ufffdb\ufffd"'],
    ["an integer below 10^21 is printed in full", 1e20, "100000000000000000000"],
    ["a number of 10^21 is printed with an exponent", 1e21, "1e+21"],
    ["a fraction of 10^-6 is printed in full", 0.000001, "0.000001"],
    ["a smaller fraction is printed with an exponent without leading zeros", 1.5e-7, "1.5e-7"],
    ["the sign of a negative zero is kept", -0, "-0"],
    ["a raw number is printed as it was written", parseJson("[9007199254740993]"), "[9007199254740993]"],
  ];
  it.each(rows)("%s", (_sentence, value, text) => expect(goJson(value)).toBe(text));

  it.each([
    ["NaN", Number.NaN],
    ["a function", () => 1],
    ["a bigint", 1n],
  ])("goJson refuses %s", (_what, value) => {
    expect(() => goJson([value])).toThrow(/JSON/);
  });

  it("JSON.parse reads the texts of goJson and sortedGoJson back to the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        expect(JSON.parse(goJson(value))).toEqual(value);
        expect(JSON.parse(sortedGoJson(value))).toEqual(value);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("JSON with sorted keys", () => {
  const rows: readonly (readonly [string, unknown, string])[] = [
    ["keys are sorted at every level", { b: [{ d: 1, c: 2 }], a: 3 }, '{"a":3,"b":[{"c":2,"d":1}]}'],
    ["keys that look like integers are sorted by their bytes", { 2: 1, 10: 2, "-": 3 }, '{"-":3,"10":2,"2":1}'],
    [
      "keys beyond the Basic Multilingual Plane are sorted last",
      { "😀": 1, "\uffee": 2, "\ue000": 3 },
      '{"\ue000":3,"\uffee":2,"😀":1}',
    ],
    ["a key is sorted before a longer key that starts with it", { ab: 1, a: 2 }, '{"a":2,"ab":1}'],
  ];
  it.each(rows)("%s", (_sentence, value, text) => expect(sortedGoJson(value)).toBe(text));

  it("the order of keys in an object does not change the sorted text", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(sortedGoJson(reversed)).toBe(sortedGoJson(value));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("compareUtf8", () => {
  it("characters at the ends of the Unicode planes are sorted by code point", () => {
    expect(compareUtf8("\ud7ff", "\ue000")).toBeLessThan(0);
    expect(compareUtf8("\ue000", "\u{10000}")).toBeLessThan(0);
    expect(compareUtf8("\u{10000}", "\ud7ff")).toBeGreaterThan(0);
  });

  it("texts are sorted by their UTF-8 bytes", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 5000 },
    );
  });
});
