import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fieldQuantity,
  formatQuantity,
  type ParsedQuantity,
  parseQuantity,
  readFieldQuantity,
  readQuantity,
} from "../../../shared/go/quantity/quantity.ts";
import {
  addQuantities,
  compareQuantities,
  integerValue,
  milliValue,
  quantityOfMilli,
  roundUpToMilli,
} from "../../../shared/go/quantity/quantity-arithmetic.ts";

function parsed(text: string | number): ParsedQuantity {
  const quantity = parseQuantity(text);
  if (quantity === undefined) throw new Error(`${text} is no quantity`);
  return quantity;
}

describe("formatQuantity", () => {
  const rows: readonly (readonly [string, string | number, string])[] = [
    ["keeps a text that counts as canonical", "+1.500", "+1.500"],
    ["keeps leading zeros of one that does", "0001Mi", "0001Mi"],
    ["moves thousands into the suffix", "1000m", "1"],
    ["moves 1024s into the binary suffix", "2048Ki", "2Mi"],
    ["leaves no fraction", "1.5Gi", "1536Mi"],
    ["shows a binary fraction of a byte in thousandths", "0.1Ki", "102400m"],
    ["shows fewer than 1024 bytes plainly", "0.5Ki", "512"],
    ["reads a bare number by its text", 0.5, "500m"],
    ["rounds up to nano", "0.0000000001", "1n"],
    ["rounds a negative one away from zero too", "-0.0000000001", "-1n"],
    ["keeps exponents", "12e-1", "1200e-3"],
    ["tells the suffix E from an exponent", "1E", "1E"],
    ["caps binary quantities at int64", "16Ei", "9223372036854775807"],
    ["holds decimal ones beyond int64", "123456789012345678901234567890", "123456789012345678901234567890"],
    ["knows one zero", "-0.00Gi", "0"],
    ["reads no digits as 0 within int64", "-k", "0"],
    ["reads a thousand digits", "1".repeat(1000), "1".repeat(1000)],
    ["reads exponents up to ten thousand", "1e-10000", "1e-9"],
  ];
  it.each(rows)("%s", (_sentence, text, shown) => expect(formatQuantity(parsed(text))).toBe(shown));
});

describe("parseQuantity", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["", "regular expression"],
    ["one", "regular expression"],
    ["1 Gi", "regular expression"],
    ["1.2.3", "regular expression"],
    ["--1", "suffix"],
    ["1x", "regular expression"],
    ["1".repeat(1001), "regular expression"],
    ["1K", "suffix"],
    ["1e", "suffix"],
    ["1Gi2", "suffix"],
    ["1e99999999999", "suffix"],
    ["1e10001", "suffix"],
    ["1ke3", "suffix"],
    ["1Pe3", "suffix"],
    ["-Ei", "numeric part"],
    ["+.Pi", "numeric part"],
  ];
  it.each(rows)("refuses %j", (text, reason) => {
    expect(parseQuantity(text)).toBeUndefined();
    expect(readQuantity(text)).toMatchObject({ kind: "InvalidQuantity", message: expect.stringContaining(reason) });
  });
});

describe("blanks around a quantity", () => {
  const shown = (quantity: ParsedQuantity | undefined) => quantity && formatQuantity(quantity);
  const unicode = [
    0x85,
    0xa0,
    0x1680,
    ...Array.from({ length: 11 }, (_, index) => 0x2000 + index),
    0x202f,
    0x205f,
    0x3000,
  ];
  // What apimachinery 0.36 makes of such a text in JSON that Go has written.
  const read = [0x20, ...unicode].map((code) => String.fromCharCode(code));
  const refused = [0x9, 0xa, 0xb, 0xc, 0xd, 0x180e, 0x200b, 0x2028, 0x2029, 0xfeff].map((code) =>
    String.fromCharCode(code),
  );

  it.each(read)("%j is overlooked in a field, as Go decodes it, and nowhere else", (blank) => {
    for (const text of [`${blank}1Gi`, `1Gi${blank}`, `${blank}${blank}1Gi${blank}`]) {
      expect(shown(fieldQuantity(text))).toBe("1Gi");
      expect(parseQuantity(text)).toBeUndefined();
    }
  });

  it.each(refused)("%j is overlooked nowhere, since Go writes it as an escape, or takes it for no blank", (blank) => {
    for (const text of [`${blank}1Gi`, `1Gi${blank}`]) {
      expect(readFieldQuantity(text)).toEqual(readQuantity(text));
      expect(fieldQuantity(text)).toBeUndefined();
    }
  });

  it("cost no more than their number", () => {
    expect(fieldQuantity(`1${" ".repeat(250_000)}1`)).toBeUndefined();
    expect(shown(fieldQuantity(`${" ".repeat(250_000)}1`))).toBe("1");
  });

  it("alone are no quantity", () => {
    expect(readFieldQuantity("  ")).toEqual(readQuantity(""));
  });
});

describe("arithmetic", () => {
  it("rounds up to thousandths only what is finer", () => {
    const shown = ["100u", "1.1239", "-0.0001", "+1.5", "1.500", "1e-9"].map((text) =>
      formatQuantity(roundUpToMilli(parsed(text))),
    );
    expect(shown).toEqual(["1m", "1124m", "-1m", "1500m", "1.500", "1e-3"]);
  });

  it("adds in the format of the first that is not zero", () => {
    const add = (a: string, b: string): string => formatQuantity(addQuantities(parsed(a), parsed(b)));
    expect(add("1Gi", "1G")).toBe("2073741824");
    expect(add("0", "1Gi")).toBe("1Gi");
    expect(add("1Gi", "0")).toBe("1Gi");
    expect(add("100m", "1Ki")).toBe("1024100m");
    expect([add("1Ki", "-24"), add("-1Ki", "24")]).toEqual(["1k", "-1k"]);
    expect([add("2Ki", "-1Ki"), add("-2Ki", "1Ki")]).toEqual(["1Ki", "-1Ki"]);
    expect(add("9223372036854775807", "1")).toBe("9223372036854775808");
  });

  it("compares by value, not by text", () => {
    expect(compareQuantities(parsed("1024Mi"), parsed("1Gi"))).toBe(0);
    expect(compareQuantities(parsed("999m"), parsed("1"))).toBe(-1);
    expect(compareQuantities(parsed("1Ei"), parsed("1E"))).toBe(1);
  });

  it("makes a quantity of thousandths", () => {
    expect(formatQuantity(quantityOfMilli(1500n, "DecimalSI"))).toBe("1500m");
    expect(formatQuantity(quantityOfMilli(2n ** 20n * 1000n, "BinarySI"))).toBe("1Mi");
  });
});

/** An exact fraction: independent of how the quantity is held. */
interface Rational {
  readonly top: bigint;
  readonly bottom: bigint;
}

const SUFFIX_VALUES: Readonly<Record<string, Rational>> = {
  ...Object.fromEntries(
    ["k", "M", "G", "T", "P", "E"].map((suffix, index) => [suffix, { top: 1000n ** BigInt(index + 1), bottom: 1n }]),
  ),
  ...Object.fromEntries(
    ["m", "u", "n"].map((suffix, index) => [suffix, { top: 1n, bottom: 1000n ** BigInt(index + 1) }]),
  ),
  ...Object.fromEntries(
    ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((suffix, index) => [
      suffix,
      { top: 1024n ** BigInt(index + 1), bottom: 1n },
    ]),
  ),
  "": { top: 1n, bottom: 1n },
};

function rational(text: string): Rational {
  const [, sign = "", whole = "", fraction = "", suffix = ""] = /^([+-]?)(\d*)\.?(\d*)(.*)$/.exec(text) ?? [];
  const digits = BigInt(`${whole}${fraction}` || "0") * (sign === "-" ? -1n : 1n);
  const scale = 10n ** BigInt(fraction.length);
  const exponent = /^[eE]([+-]?)(\d+)$/.exec(suffix);
  if (exponent !== null) {
    const power = 10n ** BigInt(exponent[2] ?? "0");
    return exponent[1] === "-" ? { top: digits, bottom: scale * power } : { top: digits * power, bottom: scale };
  }
  const { top, bottom } = SUFFIX_VALUES[suffix] ?? { top: 0n, bottom: 1n };
  return { top: digits * top, bottom: scale * bottom };
}

function ceilAway({ top, bottom }: Rational, parts: bigint): bigint {
  const scaled = (top < 0n ? -top : top) * parts;
  const up = (scaled + bottom - 1n) / bottom;
  return top < 0n ? -up : up;
}

/** Up to 12 digits: no value overflows int64 below, none is finer than nano, no binary one is capped. */
const quantityText = fc
  .record({
    sign: fc.constantFrom("", "", "+", "-"),
    whole: fc.nat({ max: 999_999 }),
    fraction: fc.option(fc.nat({ max: 9_999 }), { nil: undefined }),
    suffix: fc.constantFrom("", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-3", "e+6"),
  })
  .map(
    ({ sign, whole, fraction, suffix }) => `${sign}${whole}${fraction === undefined ? "" : `.${fraction}`}${suffix}`,
  );

describe("any quantity", () => {
  it("keeps its exact value through text", () => {
    fc.assert(
      fc.property(quantityText, (text) => {
        const shown = rational(formatQuantity(parsed(text)));
        const meant = rational(text);
        expect(shown.top * meant.bottom).toBe(meant.top * shown.bottom);
      }),
      { numRuns: 5000 },
    );
  });

  it("prints a text that it prints again, unless it was binary and lost its suffix", () => {
    fc.assert(
      fc.property(quantityText, (text) => {
        const shown = formatQuantity(parsed(text));
        const again = formatQuantity(parsed(shown));
        if (!(text.endsWith("i") && /\d$/.test(shown))) expect(again).toBe(shown);
        expect(formatQuantity(parsed(again))).toBe(again);
      }),
      { numRuns: 2000 },
    );
  });

  it("that is binary and no multiple of 1024 is read as a decimal one afterwards, as by the reference", () => {
    const shown = formatQuantity(parsed("846937.5Ki"));
    expect([shown, formatQuantity(parsed(shown))]).toEqual(["867264000", "867264k"]);
  });

  it("has the oracle's integer values and thousandths, unless the reference wraps it around (golden/quantity.json)", () => {
    fc.assert(
      fc.property(quantityText, (text) => {
        const { isInt64, unscaled } = parsed(text);
        fc.pre(isInt64 || unscaled >= 0n);
        expect(integerValue(parsed(text))).toBe(ceilAway(rational(text), 1n));
        expect(milliValue(parsed(text))).toBe(ceilAway(rational(text), 1000n));
        expect(milliValue(roundUpToMilli(parsed(text)))).toBe(milliValue(parsed(text)));
      }),
      { numRuns: 3000 },
    );
  });

  it("adds and compares as the oracle does", () => {
    fc.assert(
      fc.property(quantityText, quantityText, (a, b) => {
        const [left, right] = [rational(a), rational(b)];
        const sum = rational(formatQuantity(addQuantities(parsed(a), parsed(b))));
        const top = left.top * right.bottom + right.top * left.bottom;
        expect(sum.top * left.bottom * right.bottom).toBe(top * sum.bottom);
        const difference = left.top * right.bottom - right.top * left.bottom;
        expect(compareQuantities(parsed(a), parsed(b))).toBe(difference === 0n ? 0 : difference < 0n ? -1 : 1);
      }),
      { numRuns: 3000 },
    );
  });
});
