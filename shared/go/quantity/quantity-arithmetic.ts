/** Sums, order and integer values of quantities, with Kubernetes' rounding and overflow. */
import { divideAwayFromZero, type ParsedQuantity, type QuantityFormat } from "./quantity.ts";

const MILLI = -3;

function rescale({ unscaled, scale }: ParsedQuantity, target: number): bigint {
  return scale >= target
    ? unscaled * 10n ** BigInt(scale - target)
    : divideAwayFromZero(unscaled, 10n ** BigInt(target - scale));
}

function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

/** Rounds away from zero to thousandths; a quantity without finer digits keeps its text. */
export function roundUpToMilli(quantity: ParsedQuantity): ParsedQuantity {
  if (quantity.isInt64 && quantity.scale >= MILLI) return quantity;
  const { format, isInt64 } = quantity;
  return { unscaled: rescale(quantity, MILLI), scale: MILLI, format, isInt64 };
}

/** The sum, in the format of the first addend that is not zero. */
export function addQuantities(a: ParsedQuantity, b: ParsedQuantity): ParsedQuantity {
  const { format } = a.unscaled === 0n ? b : a;
  const isInt64Sum = a.isInt64 && b.isInt64;
  if (isInt64Sum && (a.unscaled === 0n || b.unscaled === 0n)) {
    // A zero has no scale, so the other addend keeps its own.
    const { unscaled, scale } = b.unscaled === 0n ? a : b;
    return { unscaled, scale, format, isInt64: true };
  }
  const scale = Math.min(a.scale, b.scale);
  const unscaled = rescale(a, scale) + rescale(b, scale);
  return { unscaled, scale, format, isInt64: isInt64Sum && isInt64(unscaled) };
}

/** Negative, zero or positive as a is smaller than, equal to or larger than b. */
export function compareQuantities(a: ParsedQuantity, b: ParsedQuantity): number {
  const scale = Math.min(a.scale, b.scale);
  const [left, right] = [rescale(a, scale), rescale(b, scale)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** Powers of ten by which apimachinery multiplies an int64 in one step, ignoring overflow. */
const WRAPPING_STEPS: ReadonlySet<number> = new Set([1, 2, 3, 6, 9]);

/** Compat: beyond int64 the reference answers 0 or wraps around (vectors helpers, quantity-14, -40, -42, -rand-16). */
function scaledValue(quantity: ParsedQuantity, scale: number): bigint {
  if (!quantity.isInt64) return scaledBig(quantity, scale);
  const value = rescale(quantity, scale);
  return isInt64(value) || WRAPPING_STEPS.has(quantity.scale - scale) ? BigInt.asIntN(64, value) : 0n;
}

/** Compat: a negative quantity wraps around before it is divided, and is rounded up, not away from zero. */
function scaledBig({ unscaled, scale }: ParsedQuantity, target: number): bigint {
  if (scale >= target) return BigInt.asIntN(64, unscaled * 10n ** BigInt(scale - target));
  const divisor = 10n ** BigInt(target - scale);
  const dividend = unscaled < 0n ? BigInt.asIntN(64, unscaled) : unscaled;
  return BigInt.asIntN(64, dividend / divisor + (dividend % divisor === 0n ? 0n : 1n));
}

/** The value in thousandths, rounded away from zero. Source: apimachinery Quantity.MilliValue. */
export function milliValue(quantity: ParsedQuantity): bigint {
  return scaledValue(quantity, MILLI);
}

/** The value as an integer, rounded away from zero. Source: apimachinery Quantity.Value. */
export function integerValue(quantity: ParsedQuantity): bigint {
  return scaledValue(quantity, 0);
}

/** The quantity of a number of thousandths. Source: apimachinery NewMilliQuantity. */
export function quantityOfMilli(milli: bigint, format: QuantityFormat): ParsedQuantity {
  return { unscaled: milli, scale: MILLI, format, isInt64: true };
}
