import fc from "fast-check";
import { expect, test } from "vitest";
import { formatQuantity, parseQuantity } from "../../shared/go/quantity/quantity.ts";
import { holds } from "./holds.ts";

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: Readonly<Record<number, string>> = {
  [-9]: "n",
  [-6]: "u",
  [-3]: "m",
  0: "",
  3: "k",
  6: "M",
  9: "G",
  12: "T",
  15: "P",
  18: "E",
};

interface Written {
  readonly sign: string;
  readonly whole: string;
  readonly fraction: string;
  readonly suffix: string;
}

/** Generates values that are exact down to nano, and fit into 18 digits. */
const written: fc.Arbitrary<Written> = fc.record({
  sign: fc.constantFrom("", "", "+", "-"),
  whole: fc.oneof(
    fc.nat(99_999).map(String),
    fc.nat(999).map((thousands) => `${thousands}000`),
    fc.constantFrom("0", "1024", "2048", "1048576"),
  ),
  fraction: fc.oneof(fc.constant(""), fc.constantFrom(".5", ".25", ".125", ".100", ".001", ".000")),
  suffix: fc.constantFrom("", "", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E6", "e-3"),
});

/** Returns the exact value in nano units. */
function nanoOf({ sign, whole, fraction, suffix }: Written): bigint {
  const digits = BigInt(whole + fraction.slice(1)) * (sign === "-" ? -1n : 1n);
  const places = BigInt(Math.max(0, fraction.length - 1));
  const binary = BINARY.indexOf(suffix);
  if (binary > 0) return (digits * 1024n ** BigInt(binary) * 10n ** 9n) / 10n ** places;
  return digits * 10n ** (BigInt(exponentOf(suffix)) + 9n - places);
}

const isExponent = (suffix: string) => /^[eE]/.test(suffix);
const isBinary = (suffix: string) => BINARY.indexOf(suffix) > 0;

function exponentOf(suffix: string): number {
  if (isExponent(suffix)) return Number(suffix.slice(1));
  return Number(Object.entries(DECIMAL).find(([, each]) => each === suffix)?.[0]);
}

/** True if OpenKruise's parser keeps the text unchanged as canonical. */
function isKept({ whole, fraction, suffix }: Written): boolean {
  const decimals = fraction.slice(1);
  const digits = (whole.replace(/^0+/, "") || "0") + decimals;
  if (isBinary(suffix)) return fraction === "" && BigInt(whole) % 8n !== 0n;
  const scale = exponentOf(suffix) - decimals.length;
  return scale % 3 === 0 && scale >= -9 && !digits.endsWith("000") && !digits.startsWith("0");
}

/** Returns the canonical text by the reference's rules: the largest suffix that leaves an integer. */
function canonical(nano: bigint, suffix: string): string {
  if (nano === 0n) return "0";
  const value = nano / 10n ** 9n;
  const size = value < 0n ? -value : value;
  if (isBinary(suffix) && value * 10n ** 9n === nano && size >= 1024n) return withBinarySuffix(value);
  let exponent = -9;
  let mantissa = nano;
  while (mantissa % 1000n === 0n && (exponent < 18 || isExponent(suffix))) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (!isExponent(suffix)) return `${mantissa}${DECIMAL[exponent] ?? "?"}`;
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
}

function withBinarySuffix(value: bigint): string {
  let power = 0;
  let rest = value;
  while (rest % 1024n === 0n && power < BINARY.length - 1) {
    rest /= 1024n;
    power++;
  }
  return `${rest}${BINARY[power]}`;
}

test("formatQuantity prints a canonical quantity as it was written, and any other quantity in canonical form", () => {
  const classes = ["kept", "rewritten", "binary", "exponent", "fraction", "negative"];
  holds(written, classes, (given, seen) => {
    const { sign, whole, fraction, suffix } = given;
    const text = `${sign}${whole}${fraction}${suffix}`;
    const quantity = parseQuantity(text);
    if (quantity === undefined) throw new Error(`${text} is no quantity`);
    const nano = nanoOf(given);
    const wanted = nano !== 0n && isKept(given) ? text : canonical(nano, suffix);
    expect(formatQuantity(quantity)).toBe(wanted);
    seen("rewritten", wanted !== text);
    seen("kept", wanted === text && wanted !== canonical(nano, suffix));
    seen("binary", isBinary(suffix));
    seen("exponent", isExponent(suffix));
    seen("fraction", fraction !== "");
    seen("negative", sign === "-");
  });
});
