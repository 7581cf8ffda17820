/** JSON numbers that a JavaScript number cannot hold, kept as their original text. */

/**
 * A JSON number kept as text: the result of `JSON.rawJSON`. `JSON.stringify` and `goJson` print it unchanged;
 * `structuredClone` and a trip through `JSON.parse` lose it.
 */
export interface RawNumber {
  readonly rawJSON: string;
}

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** Functions of Node's JSON that TypeScript's library does not declare yet. */
const json = JSON as unknown as {
  readonly parse: (text: string, reviver: Reviver) => unknown;
  readonly rawJSON: (text: string) => RawNumber;
  readonly isRawJSON: (value: unknown) => boolean;
};

const INTEGER = /^-?\d+$/;

/**
 * Finds a text that may contain such a number: 16 digits in a row, or an exponent of three. A match inside a string
 * does no harm. Most documents have no match, and are read five times faster without a reviver.
 */
const MAY_BE_LOSSY = /(?:^|[:,[\s])-?\d(?:\d{15}|[\d.]*[eE]\+?\d{3})/;
/** A necessary condition for the expression above, found several times faster. */
const LONG_EXPONENT = /[eE]\+?\d{3}/;

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Searches from the end of each window: a character that is not a digit there rules out the 16 before it. */
function hasLongRun(text: string): boolean {
  for (let end = 15, at = 0; end < text.length; end = at + 16) {
    for (at = end; isDigit(text.charCodeAt(at)); at--) if (at === end - 15) return true;
  }
  return false;
}

/** False: `JSON.parse` reads all numbers of this text exactly. */
export function mayBeLossy(text: string): boolean {
  return (hasLongRun(text) || LONG_EXPONENT.test(text)) && MAY_BE_LOSSY.test(text);
}

function isLossy(value: number, source: string): boolean {
  return !Number.isFinite(value) || (INTEGER.test(source) && !Number.isSafeInteger(value));
}

/**
 * `JSON.parse`, but integers beyond 2^53 (int64 fields, quantities) and numbers beyond float64 come as RawNumber.
 * Throws SyntaxError as `JSON.parse` does.
 */
export function parseJson(text: string): unknown {
  if (!mayBeLossy(text)) return JSON.parse(text);
  return json.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && isLossy(value, source) ? json.rawJSON(source) : value,
  );
}

export function isRawNumber(value: unknown): value is RawNumber {
  return json.isRawJSON(value);
}
