/** Decides what Go's strconv.Atoi, 64 bits wide, has against a text. */
import { quote } from "./field-error.ts";
import { shortText } from "./unseen.ts";

const INTEGER = /^[+-]?\d+$/;
/** Go quotes all of it; what a pod says then fills no message. */
const MAX_QUOTED = 100;
const MOST_DIGITS = 19;

/** Undefined for a text that is a number to it. */
export function atoiProblem(text: string): string | undefined {
  const isNumber = INTEGER.test(text);
  if (isNumber && isInt64(text)) return undefined;
  const quoted = quote(shortText(text, MAX_QUOTED));
  return `strconv.Atoi: parsing ${quoted}: ${isNumber ? "value out of range" : "invalid syntax"}`;
}

/** Whether an integer fits into 64 bits. Reading one of very many digits takes long, so their number is compared first. */
export function isInt64(integer: string): boolean {
  if (integer.replace(/^[+-]?0*/, "").length > MOST_DIGITS) return false;
  const value = BigInt(integer);
  return BigInt.asIntN(64, value) === value;
}
