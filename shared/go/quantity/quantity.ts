/** The exact value of a resource.Quantity's text, and the text that Kubernetes prints for it. */
import type { Quantity } from "../../api/kubernetes.ts";

/** The family of suffixes that a quantity was written with, and is printed with. */
export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/** The exact number unscaled × 10^scale. */
export interface ParsedQuantity {
  readonly unscaled: bigint;
  readonly scale: number;
  readonly format: QuantityFormat;
  /** The original text, if Kubernetes counts it as canonical and prints it again. */
  readonly text?: string;
  /** True: Kubernetes stores it in an int64 with a scale. An overflow there counts as 0 and does not wrap around. */
  readonly isInt64: boolean;
}

/** A text that is no quantity. `message` is apimachinery's. */
export interface QuantityError {
  readonly kind: "InvalidQuantity";
  readonly message: string;
}

const WRONG_FORMAT: QuantityError = {
  kind: "InvalidQuantity",
  message: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
};
const NO_DIGITS: QuantityError = { kind: "InvalidQuantity", message: "unable to parse numeric part of quantity" };
const WRONG_SUFFIX: QuantityError = { kind: "InvalidQuantity", message: "unable to parse quantity's suffix" };

const PARTS = /^([+-]?)0*(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[+-]?\d*)$/;

const DECIMAL_SUFFIXES: ReadonlyMap<string, number> = new Map(
  ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map((suffix, index) => [suffix, 3 * index - 9]),
);
const BINARY_SUFFIXES: ReadonlyMap<string, number> = new Map(
  ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((suffix, index) => [suffix, 10 * index + 10]),
);
const DECIMAL_SUFFIX_OF = new Map([...DECIMAL_SUFFIXES].map(([suffix, exponent]) => [exponent, suffix]));
const BINARY_SUFFIX_OF = new Map([...BINARY_SUFFIXES].map(([suffix, exponent]) => [exponent, suffix]));

const NANO = -9;
/** the number 1 in billionths */
const ONE = 10n ** 9n;
const MAX_INT64 = 2n ** 63n - 1n;
const MAX_INT64_DIGITS = 18;
/** A limit of this project: more would cost time and memory, and no resource needs it. */
const MAX_EXPONENT = 10_000;
const MAX_LENGTH = 1_000;

interface Suffix {
  readonly format: QuantityFormat;
  /** exponent of 10, or of 2 for BinarySI */
  readonly exponent: number;
}

interface Digits {
  readonly sign: string;
  /** digits before the point, without leading zeros, at least "0" */
  readonly whole: string;
  readonly fraction: string;
}

function readSuffix(text: string): Suffix | undefined {
  const decimal = DECIMAL_SUFFIXES.get(text);
  if (decimal !== undefined) return { format: "DecimalSI", exponent: decimal };
  const binary = BINARY_SUFFIXES.get(text);
  if (binary !== undefined) return { format: "BinarySI", exponent: binary };
  if (!/^[eE][+-]?\d+$/.test(text)) return undefined;
  const exponent = Number(text.slice(1));
  return Math.abs(exponent) > MAX_EXPONENT ? undefined : { format: "DecimalExponent", exponent };
}

function signed(sign: string, magnitude: bigint): bigint {
  return sign === "-" ? -magnitude : magnitude;
}

/** Division by a positive number that rounds away from zero. */
export function divideAwayFromZero(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  if (quotient * divisor === dividend) return quotient;
  return dividend < 0n ? quotient - 1n : quotient + 1n;
}

/** Compat: texts that are printed unchanged follow apimachinery's fast path (vectors helpers, quantity-fmt-*). */
function readDecimal(digits: Digits, { format, exponent }: Suffix, text: string): ParsedQuantity | undefined {
  const shifted = digits.whole + digits.fraction;
  const scale = exponent - digits.fraction.length;
  if (shifted.length > MAX_INT64_DIGITS || scale < NANO) return undefined;
  const isCanonical = scale % 3 === 0 && !shifted.endsWith("000") && !shifted.startsWith("0");
  const unscaled = signed(digits.sign, BigInt(shifted));
  return { unscaled, scale, format, isInt64: true, ...(isCanonical ? { text } : {}) };
}

function readBinary(digits: Digits, { exponent }: Suffix, text: string): ParsedQuantity | undefined {
  const spareDigits = 15 - digits.whole.length - Math.trunc((exponent * 3) / 10) - 1;
  if (digits.fraction !== "" || spareDigits < 0) return undefined;
  const mantissa = BigInt(digits.whole);
  const unscaled = signed(digits.sign, mantissa << BigInt(exponent));
  return { unscaled, scale: 0, format: "BinarySI", isInt64: true, ...(mantissa % 8n === 0n ? {} : { text }) };
}

/** A number beyond int64: in billionths, rounded away from zero. Binary quantities are limited to 2^63-1. */
function readBig(digits: Digits, suffix: Suffix): ParsedQuantity {
  const isBinary = suffix.format === "BinarySI";
  const factor = isBinary ? 2n ** BigInt(suffix.exponent) : 1n;
  const scale = (isBinary ? 0 : suffix.exponent) - digits.fraction.length;
  const unscaled = inNano(BigInt(digits.whole + digits.fraction) * factor, scale);
  if (isBinary && unscaled > MAX_INT64 * ONE) {
    return { unscaled: signed(digits.sign, MAX_INT64), scale: 0, format: "BinarySI", isInt64: false };
  }
  const format = isBinary && unscaled < ONE && unscaled > 0n ? "DecimalSI" : suffix.format;
  return { unscaled: signed(digits.sign, unscaled), scale: NANO, format, isInt64: false };
}

function inNano(unscaled: bigint, scale: number): bigint {
  return scale < NANO
    ? divideAwayFromZero(unscaled, 10n ** BigInt(NANO - scale))
    : unscaled * 10n ** BigInt(scale - NANO);
}

/** The quantity, or why it is none, in apimachinery's words. A bare number is read by its text. Source: apimachinery resource.ParseQuantity. */
export function readQuantity(quantity: Quantity): ParsedQuantity | QuantityError {
  const text = String(quantity);
  const parts = text === "" || text.length > MAX_LENGTH ? null : PARTS.exec(text);
  if (parts === null) return WRONG_FORMAT;
  const [, sign = "", whole = "", fraction = "", suffixText = ""] = parts;
  const suffix = readSuffix(suffixText);
  if (suffix === undefined) return WRONG_SUFFIX;
  const digits: Digits = { sign, whole: whole === "" ? "0" : whole, fraction };
  const read = suffix.format === "BinarySI" ? readBinary : readDecimal;
  // Compat: digits are missed only beyond int64, otherwise none are 0.
  return read(digits, suffix, text) ?? (/^[+-]?\.?\d/.test(text) ? readBig(digits, suffix) : NO_DIGITS);
}

/** The quantity; undefined: the text is none. */
export function parseQuantity(quantity: Quantity): ParsedQuantity | undefined {
  const read = readQuantity(quantity);
  return "kind" in read ? undefined : read;
}

/**
 * Go's white space (unicode.IsSpace) in JSON that Go has written unescaped. UnmarshalJSON trims the text between the
 * quotes before it is unescaped, so escaped spaces stay.
 */
const BLANK = /[ \u0085\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/;

function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && BLANK.test(text.charAt(start))) start++;
  while (end > start && BLANK.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Reads a quantity of an object's field, else like `readQuantity`. Source: apimachinery Quantity.UnmarshalJSON. */
export function readFieldQuantity(quantity: Quantity): ParsedQuantity | QuantityError {
  return readQuantity(typeof quantity === "string" ? withoutBlanks(quantity) : quantity);
}

/** The quantity of a field; undefined: the field has none. */
export function fieldQuantity(quantity: Quantity): ParsedQuantity | undefined {
  const read = readFieldQuantity(quantity);
  return "kind" in read ? undefined : read;
}

/** How many times `factor` divides the value, which is not 0, and the remaining value. */
function withoutFactor(value: bigint, factor: bigint): readonly [bigint, number] {
  let rest = value;
  let times = 0;
  while (rest % factor === 0n) {
    rest /= factor;
    times++;
  }
  return [rest, times];
}

/** The integer value; undefined: it has a fraction. For a binary quantity, whose scale is at most 0. */
function integerOf({ unscaled, scale }: ParsedQuantity): bigint | undefined {
  const divisor = 10n ** BigInt(-scale);
  return unscaled % divisor === 0n ? unscaled / divisor : undefined;
}

function formatBinary(quantity: ParsedQuantity): string | undefined {
  const integer = integerOf(quantity);
  if (integer === undefined || (integer > -1024n && integer < 1024n)) return undefined;
  const [mantissa, times] = withoutFactor(integer, 1024n);
  return `${mantissa}${BINARY_SUFFIX_OF.get(times * 10) ?? ""}`;
}

function formatDecimal({ unscaled, scale, format }: ParsedQuantity): string {
  const [mantissa, times] = withoutFactor(unscaled, 10n);
  const exponent = Math.floor((scale + times) / 3) * 3;
  const shown = mantissa * 10n ** BigInt(scale + times - exponent);
  if (format === "DecimalExponent") return exponent === 0 ? `${shown}` : `${shown}e${exponent}`;
  // Compat: a suffix beyond E is dropped, as Kubernetes 1.32 does (vector helpers, quantity-fmt-20).
  return `${shown}${DECIMAL_SUFFIX_OF.get(exponent) ?? ""}`;
}

/**
 * The text that Kubernetes prints: the original text if it counts as canonical, otherwise with the largest suffix that
 * leaves an integer.
 */
export function formatQuantity(quantity: ParsedQuantity): string {
  if (quantity.text !== undefined) return quantity.text;
  if (quantity.unscaled === 0n) return "0";
  return (quantity.format === "BinarySI" ? formatBinary(quantity) : undefined) ?? formatDecimal(quantity);
}
