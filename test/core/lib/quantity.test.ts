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
    ["a text that counts as canonical is kept", "+1.500", "+1.500"],
    ["leading zeros of a canonical text are kept", "0001Mi", "0001Mi"],
    ["1000m is printed as 1", "1000m", "1"],
    ["2048Ki is printed as 2Mi", "2048Ki", "2Mi"],
    ["1.5Gi is printed without a fraction as 1536Mi", "1.5Gi", "1536Mi"],
    ["a binary quantity with a fraction of a byte is printed in thousandths", "0.1Ki", "102400m"],
    ["a binary quantity below 1024 bytes is printed without a suffix", "0.5Ki", "512"],
    ["the number 0.5 is printed as 500m", 0.5, "500m"],
    ["a value finer than nano is rounded up to 1n", "0.0000000001", "1n"],
    ["a negative value finer than nano is rounded away from zero", "-0.0000000001", "-1n"],
    ["a quantity with an exponent is printed with an exponent", "12e-1", "1200e-3"],
    ["1E is read as the suffix E and not as an exponent", "1E", "1E"],
    ["a binary quantity is capped at the largest int64", "16Ei", "9223372036854775807"],
    [
      "a decimal quantity beyond int64 keeps its value",
      "123456789012345678901234567890",
      "123456789012345678901234567890",
    ],
    ["a negative zero is printed as 0", "-0.00Gi", "0"],
    ["a sign and a suffix without digits are read as 0", "-k", "0"],
    ["a quantity of a thousand digits is accepted", "1".repeat(1000), "1".repeat(1000)],
    ["an exponent of -10000 is accepted", "1e-10000", "1e-9"],
  ];
  it.each(rows)("%s", (_sentence, text, shown) => expect(formatQuantity(parsed(text))).toBe(shown));
});

describe("invalid quantities", () => {
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
  it.each(rows)("parseQuantity refuses %j", (text, reason) => {
    expect(parseQuantity(text)).toBeUndefined();
    expect(readQuantity(text)).toMatchObject({ kind: "InvalidQuantity", message: expect.stringContaining(reason) });
  });
});

describe("spaces around a quantity", () => {
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
  // apimachinery 0.36 ignores these spaces, and refuses them in JSON that Go wrote.
  const read = [0x20, ...unicode].map((code) => String.fromCharCode(code));
  const refused = [0x9, 0xa, 0xb, 0xc, 0xd, 0x180e, 0x200b, 0x2028, 0x2029, 0xfeff].map((code) =>
    String.fromCharCode(code),
  );

  it.each(read)("the space %j around a quantity is ignored in a field, as in Go, and nowhere else", (blank) => {
    for (const text of [`${blank}1Gi`, `1Gi${blank}`, `${blank}${blank}1Gi${blank}`]) {
      expect(shown(fieldQuantity(text))).toBe("1Gi");
      expect(parseQuantity(text)).toBeUndefined();
    }
  });

  it.each(refused)("a quantity with the character %j before or after it is refused, as in Go", (blank) => {
    for (const text of [`${blank}1Gi`, `1Gi${blank}`]) {
      expect(readFieldQuantity(text)).toEqual(readQuantity(text));
      expect(fieldQuantity(text)).toBeUndefined();
    }
  });

  it("250,000 spaces are refused inside a quantity and ignored before it", () => {
    expect(fieldQuantity(`1${" ".repeat(250_000)}1`)).toBeUndefined();
    expect(shown(fieldQuantity(`${" ".repeat(250_000)}1`))).toBe("1");
  });

  it("spaces alone are not a quantity", () => {
    expect(readFieldQuantity("  ")).toEqual(readQuantity(""));
  });
});

describe("quantity arithmetic", () => {
  it("roundUpToMilli rounds values finer than a thousandth away from zero", () => {
    const shown = ["100u", "1.1239", "-0.0001", "+1.5", "1.500", "1e-9"].map((text) =>
      formatQuantity(roundUpToMilli(parsed(text))),
    );
    expect(shown).toEqual(["1m", "1124m", "-1m", "1500m", "1.500", "1e-3"]);
  });

  it("a sum has the format of its first operand that is not zero", () => {
    const add = (a: string, b: string): string => formatQuantity(addQuantities(parsed(a), parsed(b)));
    expect(add("1Gi", "1G")).toBe("2073741824");
    expect(add("0", "1Gi")).toBe("1Gi");
    expect(add("1Gi", "0")).toBe("1Gi");
    expect(add("100m", "1Ki")).toBe("1024100m");
    expect([add("1Ki", "-24"), add("-1Ki", "24")]).toEqual(["1k", "-1k"]);
    expect([add("2Ki", "-1Ki"), add("-2Ki", "1Ki")]).toEqual(["1Ki", "-1Ki"]);
    expect(add("9223372036854775807", "1")).toBe("9223372036854775808");
  });

  it("quantities are compared by value, not by text", () => {
    expect(compareQuantities(parsed("1024Mi"), parsed("1Gi"))).toBe(0);
    expect(compareQuantities(parsed("999m"), parsed("1"))).toBe(-1);
    expect(compareQuantities(parsed("1Ei"), parsed("1E"))).toBe(1);
  });

  it("quantityOfMilli makes a quantity from thousandths", () => {
    expect(formatQuantity(quantityOfMilli(1500n, "DecimalSI"))).toBe("1500m");
    expect(formatQuantity(quantityOfMilli(2n ** 20n * 1000n, "BinarySI"))).toBe("1Mi");
  });
});

/** An exact fraction, independent of how the quantity is stored. */
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

/** Up to 12 digits, so that no value overflows int64, is finer than nano, or is capped as a binary quantity. */
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

describe("generated quantities", () => {
  it("printing a quantity keeps its exact value", () => {
    fc.assert(
      fc.property(quantityText, (text) => {
        const shown = rational(formatQuantity(parsed(text)));
        const meant = rational(text);
        expect(shown.top * meant.bottom).toBe(meant.top * shown.bottom);
      }),
      { numRuns: 5000 },
    );
  });

  it("a printed quantity prints the same again, unless it was binary and lost its suffix", () => {
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

  it("a binary quantity that is no multiple of 1024 is read again as a decimal one, as in Kubernetes", () => {
    const shown = formatQuantity(parsed("846937.5Ki"));
    expect([shown, formatQuantity(parsed(shown))]).toEqual(["867264000", "867264k"]);
  });

  it("integerValue and milliValue round the exact value away from zero, except where Kubernetes overflows", () => {
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

  it("sums and comparisons of quantities are exact", () => {
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
