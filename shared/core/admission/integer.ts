/** Tells whether an integer field is within its bounds. */
import { type FieldError, invalid, invalidEach } from "../../go/field-error.ts";
import { isRawNumber } from "../../go/json/json-number.ts";
import { rangeErrors } from "../../go/label-name.ts";

/** 0 for an absent field, as in Go. An integer beyond 2^53 loses digits, which no bound here notices. */
export function numberOf(value: unknown): number {
  if (isRawNumber(value)) return Number(value.rawJSON);
  return typeof value === "number" ? value : 0;
}

export function validateNonNegative(value: unknown, field: string): readonly FieldError[] {
  return numberOf(value) < 0 ? [invalid(field, value, "must be greater than or equal to 0")] : [];
}

/** Checks the value against both bounds, inclusive. */
export function validateRange(
  value: unknown,
  field: string,
  [low, high]: readonly [number, number],
): readonly FieldError[] {
  return invalidEach(field, value ?? 0, rangeErrors(numberOf(value), low, high));
}
