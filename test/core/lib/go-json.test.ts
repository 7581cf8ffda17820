import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareUtf8, goJson, sortedGoJson } from "../../../shared/go/json/go-json.ts";
import { parseJson } from "../../../shared/go/json/json-number.ts";

describe("goJson", () => {
  const rows: readonly (readonly [string, unknown, string])[] = [
    ["keeps the order of keys", { b: 1, a: 2 }, '{"b":1,"a":2}'],
    ["leaves out what is undefined", { a: undefined, b: null }, '{"b":null}'],
    ["prints undefined alone as null", undefined, "null"],
    ["escapes what HTML would read", "<a href='&'>", "\"\\u003ca href='\\u0026'\\u003e\""],
    ["escapes keys alike", { "<": "&" }, '{"\\u003c":"\\u0026"}'],
    ["escapes the line separators", "\u2028\u2029", '"\\u2028\\u2029"'],
    [
      "writes control characters short or with four digits",
      "\b\f\n\r\t\u0000\u001f",
      '"\\b\\f\\n\\r\\t\\u0000\\u001f"',
    ],
    ["leaves DEL and everything beyond ASCII raw", "\u007fé日😀", '"\u007fé日😀"'],
    ["replaces half a surrogate pair", "a\ud800b\udc00", '"a\ufffdb\ufffd"'],
    ["prints integers below 10^21 in full", 1e20, "100000000000000000000"],
    ["prints larger ones with an exponent", 1e21, "1e+21"],
    ["prints fractions above 10^-6 in full", 0.000001, "0.000001"],
    ["prints smaller ones with an exponent of no leading zero", 1.5e-7, "1.5e-7"],
    ["keeps the sign of zero", -0, "-0"],
    ["prints a raw number as it was written", parseJson("[9007199254740993]"), "[9007199254740993]"],
  ];
  it.each(rows)("%s", (_sentence, value, text) => expect(goJson(value)).toBe(text));

  it.each([
    ["NaN", Number.NaN],
    ["a function", () => 1],
    ["a bigint", 1n],
  ])("refuses %s", (_what, value) => {
    expect(() => goJson([value])).toThrow(/JSON/);
  });

  it("reads back as the value it was made of", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        expect(JSON.parse(goJson(value))).toEqual(value);
        expect(JSON.parse(sortedGoJson(value))).toEqual(value);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("sortedGoJson", () => {
  const rows: readonly (readonly [string, unknown, string])[] = [
    ["sorts at every level", { b: [{ d: 1, c: 2 }], a: 3 }, '{"a":3,"b":[{"c":2,"d":1}]}'],
    ["sorts keys that look like integers by their bytes", { 2: 1, 10: 2, "-": 3 }, '{"-":3,"10":2,"2":1}'],
    ["sorts beyond the basic plane after it", { "😀": 1, "\uffee": 2, "\ue000": 3 }, '{"\ue000":3,"\uffee":2,"😀":1}'],
    ["sorts a prefix first", { ab: 1, a: 2 }, '{"a":2,"ab":1}'],
  ];
  it.each(rows)("%s", (_sentence, value, text) => expect(sortedGoJson(value)).toBe(text));

  it("does not depend on the order of keys", () => {
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
  it("orders the ends of the planes", () => {
    expect(compareUtf8("\ud7ff", "\ue000")).toBeLessThan(0);
    expect(compareUtf8("\ue000", "\u{10000}")).toBeLessThan(0);
    expect(compareUtf8("\u{10000}", "\ud7ff")).toBeGreaterThan(0);
  });

  it("orders as the bytes do", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 5000 },
    );
  });
});
