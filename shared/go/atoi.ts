/** Decides what Go's strconv.Atoi, 64 bits wide, has against a text. */
import { quote } from "./field-error.ts";

const INTEGER = /^[+-]?\d+$/;

/** Undefined for a text that is a number to it. */
export function atoiProblem(text: string): string | undefined {
  const isNumber = INTEGER.test(text);
  if (isNumber && BigInt.asIntN(64, BigInt(text)) === BigInt(text)) return undefined;
  return `strconv.Atoi: parsing ${quote(text)}: ${isNumber ? "value out of range" : "invalid syntax"}`;
}
