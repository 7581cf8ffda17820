/** Decides which tokens a resource expression is made of, as OpenKruise's calculator cuts it. */

export interface Token {
  /** An operator, parenthesis, comma or any character that means nothing is its own kind. */
  readonly kind: "number" | "quantity" | "name" | "end" | "character";
  readonly text: string;
  /** where reading stood after this token, counted from 1 */
  readonly line: number;
  readonly column: number;
}

// Go looks at bytes and takes each for a Latin-1 character.
const LETTER = "A-Za-z\\xaa\\xb5\\xba\\xc0-\\xd6\\xd8-\\xf6\\xf8-\\xff";
const SPACE = /[\t\n\v\f\r \x85\xa0]*/y;
/**
 * Compat: letters and digits after a number or a percent sign belong to it ("10%cpu" is one token, and counts as 0).
 * "e" always starts an exponent, so it cannot start such a suffix.
 */
const NUMBER = new RegExp(
  `(?=[\\d.])\\d*\\.?\\d*(?:[eE][+-]?\\d*)?(?:%\\d*)?(?:(?<![eE])(?![eE])[${LETTER}][${LETTER}]*)?`,
  "y",
);
const NAME = new RegExp(`[${LETTER}][${LETTER}\\d_]*`, "y");
const QUANTITY = /^[\d.eE+-]+(?:m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)$/;

function matchAt(pattern: RegExp, bytes: string, position: number): string {
  pattern.lastIndex = position;
  return pattern.exec(bytes)?.[0] ?? "";
}

function tokenAt(bytes: string, position: number): Pick<Token, "kind" | "text"> {
  const number = matchAt(NUMBER, bytes, position);
  if (number !== "") return { kind: QUANTITY.test(number) ? "quantity" : "number", text: number };
  const name = matchAt(NAME, bytes, position);
  if (name !== "") return { kind: "name", text: name };
  const character = bytes.charAt(position);
  return { kind: character === "" || character === "\0" ? "end" : "character", text: character };
}

function latin1Bytes(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

/** All tokens up to the end, which is one too. */
export function tokensOf(expression: string): readonly Token[] {
  const bytes = latin1Bytes(expression);
  const tokens: Token[] = [];
  let [position, line, lineStart] = [0, 1, 0];
  for (;;) {
    const begin = position;
    position += matchAt(SPACE, bytes, position).length;
    const { kind, text } = tokenAt(bytes, position);
    position += text.length;
    const breaks = bytes.slice(begin, position).split("\n");
    if (breaks.length > 1) lineStart = position - (breaks.at(-1)?.length ?? 0);
    line += breaks.length - 1;
    tokens.push({ kind, text, line, column: position - lineStart + 1 });
    if (kind === "end") return tokens;
  }
}
