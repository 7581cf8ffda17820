/** The results of a resource expression's operators and functions on numbers and quantities. */
import { type ParsedQuantity, type QuantityFormat, readQuantity } from "./quantity.ts";
import { addQuantities, compareQuantities, milliValue, quantityOfMilli } from "./quantity-arithmetic.ts";

/** A number is a float64, as in the reference. */
export type ExpressionValue =
  | { readonly kind: "number"; readonly number: number }
  | { readonly kind: "quantity"; readonly quantity: ParsedQuantity };

/** A value, or a sentence that says why there is none. */
export type Outcome = ExpressionValue | string;

const NUMBER = /^(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const INT64_LIMIT = 2 ** 63;

/** Go's int64(number): truncated; an overflow becomes the smallest integer, as on amd64. */
export function toInt64(number: number): bigint {
  const isInside = Math.abs(number) < INT64_LIMIT;
  return isInside ? BigInt(Math.trunc(number)) : -(2n ** 63n);
}

function ofNumber(number: number): ExpressionValue {
  return { kind: "number", number };
}

function ofQuantity(quantity: ParsedQuantity): ExpressionValue {
  return { kind: "quantity", quantity };
}

function ofMilli(milli: number, format: QuantityFormat): ExpressionValue {
  return ofQuantity(quantityOfMilli(toInt64(milli), format));
}

function quantityOf(value: ExpressionValue): ParsedQuantity {
  return value.kind === "quantity" ? value.quantity : quantityOfMilli(toInt64(value.number * 1000), "DecimalSI");
}

/** Compat: a text that is no number counts as 0 (vector expr-37). */
export function readNumber(text: string): ExpressionValue {
  const isPercent = text.endsWith("%");
  const digits = isPercent ? text.slice(0, -1) : text;
  const number = NUMBER.test(digits) ? Number(digits) : 0;
  if (!isPercent) return ofNumber(number);
  return ofNumber(Number.isFinite(number) ? number / 100 : 0);
}

export function readQuantityValue(text: string): Outcome {
  const read = readQuantity(text);
  return "kind" in read ? read.message : ofQuantity(read);
}

export function negate(value: ExpressionValue): ExpressionValue {
  if (value.kind === "number") return ofNumber(-value.number);
  const { unscaled, scale, format, isInt64 } = value.quantity;
  return ofQuantity({ unscaled: -unscaled, scale, format, isInt64 });
}

export function add(left: ExpressionValue, right: ExpressionValue): Outcome {
  if (left.kind === "number" && right.kind === "number") return ofNumber(left.number + right.number);
  return ofQuantity(addQuantities(quantityOf(left), quantityOf(right)));
}

export function subtract(left: ExpressionValue, right: ExpressionValue): Outcome {
  if (left.kind === "number" && right.kind === "number") return ofNumber(left.number - right.number);
  return add(ofQuantity(quantityOf(left)), negate(ofQuantity(quantityOf(right))));
}

function scaleQuantity(quantity: ParsedQuantity, scale: (milli: number) => number): ExpressionValue {
  return ofMilli(scale(Number(milliValue(quantity))), quantity.format);
}

export function multiply(left: ExpressionValue, right: ExpressionValue): Outcome {
  if (left.kind === "number") {
    if (right.kind === "number") return ofNumber(left.number * right.number);
    return scaleQuantity(right.quantity, (milli) => milli * left.number);
  }
  if (right.kind === "quantity") return "multiplication of two quantities";
  return scaleQuantity(left.quantity, (milli) => milli * right.number);
}

export function divide(left: ExpressionValue, right: ExpressionValue): Outcome {
  if (right.kind === "quantity") return "division by quantity";
  if (right.number === 0) return "division by zero";
  if (left.kind === "number") return ofNumber(left.number / right.number);
  return scaleQuantity(left.quantity, (milli) => milli / right.number);
}

function compareValues(left: ExpressionValue, right: ExpressionValue): number {
  if (left.kind === "number" && right.kind === "number") return left.number - right.number;
  return compareQuantities(quantityOf(left), quantityOf(right));
}

/** The larger (direction 1) or the smaller (-1); of equals the first. A number beside a quantity becomes one. */
export function extreme(left: ExpressionValue, right: ExpressionValue, direction: 1 | -1): ExpressionValue {
  const chosen = compareValues(left, right) * direction >= 0 ? left : right;
  const areNumbers = left.kind === "number" && right.kind === "number";
  return areNumbers ? chosen : ofQuantity(quantityOf(chosen));
}
