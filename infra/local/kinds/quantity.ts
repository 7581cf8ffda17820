/** Amounts of resources, such as 100m or 1Gi: their exact value, and the text that kube-apiserver prints. */

export interface Quantity {
  /** the value in billionths, the finest unit */
  readonly nano: bigint;
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent";
  /** the original text, if kube-apiserver prints that again */
  readonly text?: string;
}

export const NO_QUANTITY: Quantity = { nano: 0n, format: "DecimalSI" };

/** The value of a field; undefined: the field has no valid amount. */
export function readQuantity(value: unknown): Quantity | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const text = String(value).trim();
  const parts = text === "" || text.length > MAX_LENGTH ? null : PARTS.exec(text);
  if (parts === null) return undefined;
  const [, sign = "", whole, fraction = "", binary, decimal = "", exponent] = parts;
  const digits: Digits = { sign, digits: `${whole || "0"}${fraction}`, places: fraction.length, text };
  if (binary !== undefined) return binaryQuantity(digits, 1024n ** BigInt(BINARY.indexOf(binary)));
  return exponent === undefined
    ? decimalQuantity(digits, "DecimalSI", 3 * DECIMAL.indexOf(decimal) - 9)
    : decimalQuantity(digits, "DecimalExponent", Number(exponent));
}

/** The original text, or the form with the largest suffix that leaves an integer: 1000m is 1. */
export function quantityText({ nano, format, text }: Quantity): string {
  if (text !== undefined) return text;
  if (nano === 0n) return "0";
  return (format === "BinarySI" ? binaryText(nano) : undefined) ?? decimalText(nano, format);
}

/** The value in thousandths, rounded up. */
export function milliOf({ nano }: Quantity): bigint {
  return scaled(nano, -6);
}

/** The value as an integer, rounded up. */
export function integerOf({ nano }: Quantity): bigint {
  return scaled(nano, -9);
}

/** The sum in the format of the first quantity that is not zero. */
export function sumOf(one: Quantity, other: Quantity): Quantity {
  return { nano: one.nano + other.nano, format: one.nano === 0n ? other.format : one.format };
}

const DECIMAL = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const PARTS = /^([+-]?)0*(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,4}))$/;
const MAX_LENGTH = 1_000;
const ONE = 10n ** 9n;
const MAX_BINARY = (2n ** 63n - 1n) * ONE;

interface Digits {
  readonly sign: string;
  /** all digits without the point */
  readonly digits: string;
  /** number of digits behind the point */
  readonly places: number;
  readonly text: string;
}

function decimalQuantity(
  { sign, digits, places, text }: Digits,
  format: Quantity["format"],
  exponent: number,
): Quantity {
  const scale = exponent - places;
  const nano = scaled(BigInt(`${sign}${digits}`), scale + 9);
  const isKept = digits.length <= 18 && scale >= -9 && scale % 3 === 0 && !/^0|000$/.test(digits);
  return isKept ? { nano, format, text } : { nano, format };
}

function binaryQuantity({ sign, digits, places, text }: Digits, unit: bigint): Quantity {
  const value = scaled(BigInt(digits) * unit, 9 - places);
  const isCapped = value > MAX_BINARY;
  const nano = BigInt(`${sign}1`) * (isCapped ? MAX_BINARY : value);
  const isKept = !isCapped && places === 0 && BigInt(digits) % 8n !== 0n;
  return isKept ? { nano, format: "BinarySI", text } : { nano, format: "BinarySI" };
}

/** The value times 10^`exponent`, rounded away from zero. */
function scaled(value: bigint, exponent: number): bigint {
  if (exponent >= 0) return value * 10n ** BigInt(exponent);
  const divisor = 10n ** BigInt(-exponent);
  const quotient = value / divisor;
  if (quotient * divisor === value) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

/** How many times `factor` divides the value, which is not 0, and the remaining value. */
function divided(value: bigint, factor: bigint): readonly [bigint, number] {
  let [rest, times] = [value, 0];
  while (rest % factor === 0n) {
    rest /= factor;
    times++;
  }
  return [rest, times];
}

/** The text with a binary suffix; undefined: the value is less than 1Ki, or no suffix leaves an integer. */
function binaryText(nano: bigint): string | undefined {
  const integer = nano / ONE;
  if (integer * ONE !== nano || (integer > -1024n && integer < 1024n)) return undefined;
  const [mantissa, times] = divided(integer, 1024n);
  return `${mantissa}${BINARY[times] ?? ""}`;
}

function decimalText(nano: bigint, format: Quantity["format"]): string {
  const [mantissa, times] = divided(nano, 1000n);
  if (format !== "DecimalExponent") return `${mantissa}${DECIMAL[times] ?? ""}`;
  return times === 3 ? `${mantissa}` : `${mantissa}e${3 * times - 9}`;
}
