/** Decides in which order a resource expression is computed. */

/** One step of the computation on a stack of values. */
export type Step =
  | { readonly kind: "number" | "quantity" | "variable"; readonly text: string }
  | { readonly kind: "add" | "subtract" | "multiply" | "divide" | "negate" }
  | { readonly kind: "call"; readonly name: string; readonly argumentCount: number };

export interface ParsedExpression {
  /** Operands before their operation. After a syntax error: what was complete before it. */
  readonly steps: readonly Step[];
  readonly syntaxError?: string;
}

/** Deeper nesting is a syntax error: reading it would exhaust the stack. */
const DEEPEST = 500;

const SUMS: ReadonlyMap<string, Step> = new Map([
  ["+", { kind: "add" }],
  ["-", { kind: "subtract" }],
]);
const PRODUCTS: ReadonlyMap<string, Step> = new Map([
  ["*", { kind: "multiply" }],
  ["/", { kind: "divide" }],
]);

class Parser {
  readonly steps: Step[] = [];
  private readonly tokens: readonly Token[];
  private position = 0;
  private depth = 0;

  constructor(expression: string) {
    this.tokens = tokensOf(expression);
  }

  private get token(): Token {
    return this.tokens[this.position] as Token;
  }

  get syntaxError(): string {
    return `parse error: syntax error at line ${this.token.line}, col ${this.token.column}`;
  }

  isAtEnd(): boolean {
    return this.token.kind === "end";
  }

  private skip(character: string): boolean {
    if (this.token.text !== character) return false;
    this.position++;
    return true;
  }

  private operator(table: ReadonlyMap<string, Step>): Step | undefined {
    const step = table.get(this.token.text);
    if (step !== undefined) this.position++;
    return step;
  }

  private chain(table: ReadonlyMap<string, Step>, operand: () => boolean): boolean {
    if (!operand()) return false;
    for (let step = this.operator(table); step !== undefined; step = this.operator(table)) {
      if (!operand()) return false;
      this.steps.push(step);
    }
    return true;
  }

  /** False: the current token is a syntax error. */
  expression(): boolean {
    return this.chain(SUMS, () => this.chain(PRODUCTS, () => this.factor()));
  }

  private factor(): boolean {
    this.depth++;
    const isFactor = this.depth <= DEEPEST && this.unboundedFactor();
    this.depth--;
    return isFactor;
  }

  private unboundedFactor(): boolean {
    const { kind, text } = this.token;
    if (kind === "number" || kind === "quantity") {
      this.position++;
      this.steps.push({ kind, text });
      return true;
    }
    if (kind === "name") return this.named(text);
    if (this.skip("(")) return this.expression() && this.skip(")");
    if (!this.skip("-") || !this.factor()) return false;
    this.steps.push({ kind: "negate" });
    return true;
  }

  private named(name: string): boolean {
    this.position++;
    if (!this.skip("(")) {
      this.steps.push({ kind: "variable", text: name.toLowerCase() });
      return true;
    }
    if (!this.expression()) return false;
    const hasSecond = this.skip(",");
    if (hasSecond && !this.expression()) return false;
    if (!this.skip(")")) return false;
    this.steps.push({ kind: "call", name, argumentCount: hasSecond ? 2 : 1 });
    return true;
  }
}

/** Source: OpenKruise pkg/util/calculator (yacc grammar); a call takes one or two arguments. Never throws. */
export function parseResourceExpression(expression: string): ParsedExpression {
  const parser = new Parser(expression);
  const isComplete = parser.expression() && parser.isAtEnd();
  return isComplete ? { steps: parser.steps } : { steps: parser.steps, syntaxError: parser.syntaxError };
}

/** Decides which tokens a resource expression is made of, as OpenKruise's calculator cuts it. */

interface Token {
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
function tokensOf(expression: string): readonly Token[] {
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
