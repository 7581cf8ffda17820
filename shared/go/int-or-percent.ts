/** The number that an int-or-string means for a `total`, in the two ways in which Kubernetes has read it. */
import type { IntOrString } from "../api/kubernetes.ts";
import { quote } from "./field-error.ts";
import { shortText } from "./unseen.ts";

const DECIMAL = /^[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const INTEGER = /^[+-]?\d+$/;

/**
 * A number as it is; "33%" or "12.5%" as that percentage, rounded up. Undefined for any other text. Source:
 * apimachinery's GetScaledValueFromIntOrPercent, with OpenKruise's decimals.
 */
export function scaleIntOrPercent(value: IntOrString, total: number): number | undefined {
  if (typeof value === "number") return value;
  const percent = value.slice(0, -1);
  if (!value.endsWith("%") || !DECIMAL.test(percent)) return undefined;
  return share(Number(percent), total);
}

/**
 * A number as it is; text is always a percentage, with or without its sign: "5" is 5 %. Undefined if it is not a whole
 * number. Source: apimachinery's deprecated GetValueFromIntOrPercent.
 */
export function scaleIntOrPercentLegacy(value: IntOrString, total: number): number | undefined {
  if (typeof value === "number") return value;
  const percent = value.replaceAll("%", "");
  if (!INTEGER.test(percent) || !isInt64(percent)) return undefined;
  return share(Number(percent), total);
}

function share(percent: number, total: number): number {
  return Math.ceil((percent * total) / 100);
}

// The error of Go's strconv.Atoi, with 64 bits, for a text.

const GO_INTEGER = /^[+-]?\d+$/;
/** Limit of a quoted text: Go quotes all of it, but a pod's text must not fill a message. */
const MAX_QUOTED = 100;
const MOST_DIGITS = 19;

/** The error; undefined: the text is a number for Atoi. */
export function atoiProblem(text: string): string | undefined {
  const isNumber = GO_INTEGER.test(text);
  if (isNumber && isInt64(text)) return undefined;
  const quoted = quote(shortText(text, MAX_QUOTED));
  return `strconv.Atoi: parsing ${quoted}: ${isNumber ? "value out of range" : "invalid syntax"}`;
}

/** True if an integer fits into 64 bits. The digits are counted first, because a long number is slow to read. */
function isInt64(integer: string): boolean {
  if (integer.replace(/^[+-]?0*/, "").length > MOST_DIGITS) return false;
  const value = BigInt(integer);
  return BigInt.asIntN(64, value) === value;
}
