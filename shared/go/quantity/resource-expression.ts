/** The value of a resource expression such as `max(cpu*50%, 50m)`. */
import { formatQuantity } from "./quantity.ts";
import {
  add,
  divide,
  type ExpressionValue,
  extreme,
  multiply,
  negate,
  type Outcome,
  readNumber,
  readQuantityValue,
  subtract,
} from "./resource-expression-arithmetic.ts";

// Parses a resource expression into steps in the order of computation.

/** One step of the calculation on a stack of values. */
type Step =
  | { readonly kind: "number" | "quantity" | "variable"; readonly text: string }
  | { readonly kind: "add" | "subtract" | "multiply" | "divide" | "negate" }
  | { readonly kind: "call"; readonly name: string; readonly argumentCount: number };

interface ParsedExpression {
  /** Operands before their operation. After a syntax error: the complete part before it. */
  readonly steps: readonly Step[];
  readonly syntaxError?: string;
}

/** Depth limit. Deeper nesting is a syntax error, because reading it would exhaust the stack. */
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

  /** Reads an expression; false: the current token is a syntax error. */
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
function parseResourceExpression(expression: string): ParsedExpression {
  const parser = new Parser(expression);
  const isComplete = parser.expression() && parser.isAtEnd();
  return isComplete ? { steps: parser.steps } : { steps: parser.steps, syntaxError: parser.syntaxError };
}

/** The tokens of a resource expression, as OpenKruise's calculator splits it. */

interface Token {
  /** kind of the token; an operator, parenthesis, comma or meaningless character is its own kind */
  readonly kind: "number" | "quantity" | "name" | "end" | "character";
  readonly text: string;
  /** line after this token, counted from 1 */
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

/** All tokens, with the end as the last one. */
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

/** Values by lower-case name. */
export type ExpressionVariables = ReadonlyMap<string, ExpressionValue>;

export type ExpressionResult =
  | ExpressionValue
  /** `message` is the text of OpenKruise's calculator. */
  | { readonly kind: "failed"; readonly message: string };

type Operands = readonly [ExpressionValue | undefined, ExpressionValue | undefined];

const OPERATIONS = { add, subtract, multiply, divide };
const EXTREMES: ReadonlyMap<string, 1 | -1> = new Map([
  ["max", 1],
  ["min", -1],
]);

/**
 * Runs the steps. As in the reference, a failed operation gives no value, nor do operations that need it, and the last
 * failure is reported.
 */
class Evaluation {
  failure: string | undefined;
  private readonly stack: (ExpressionValue | undefined)[] = [];
  private readonly variables: ExpressionVariables;

  constructor(variables: ExpressionVariables) {
    this.variables = variables;
  }

  get result(): ExpressionValue | undefined {
    return this.stack.at(-1);
  }

  private push(outcome: Outcome | undefined): void {
    if (typeof outcome === "string") this.failure = outcome;
    this.stack.push(typeof outcome === "string" ? undefined : outcome);
  }

  private popTwo(): Operands {
    const right = this.stack.pop();
    return [this.stack.pop(), right];
  }

  private call(name: string, argumentCount: number): Outcome | undefined {
    const [left, right] = this.popTwo();
    const direction = EXTREMES.get(name.toLowerCase());
    if (direction === undefined) return `unknown function: ${name}`;
    if (argumentCount !== 2) {
      return `${name.toLowerCase()} function requires exactly 2 arguments, got ${argumentCount}`;
    }
    return left === undefined || right === undefined ? undefined : extreme(left, right, direction);
  }

  private operand({ kind, text }: Extract<Step, { readonly text: string }>): Outcome {
    if (kind === "number") return readNumber(text);
    if (kind === "quantity") return readQuantityValue(text);
    return this.variables.get(text) ?? `undefined variable: ${text}`;
  }

  run(step: Step): void {
    if ("text" in step) {
      this.push(this.operand(step));
    } else if (step.kind === "call") {
      this.push(this.call(step.name, step.argumentCount));
    } else if (step.kind === "negate") {
      const value = this.stack.pop();
      this.push(value && negate(value));
    } else {
      const [left, right] = this.popTwo();
      this.push(left && right && OPERATIONS[step.kind](left, right));
    }
  }
}

/** Prints a number as Go's %g: the shortest digits, with an exponent below 10^-4 and from 10^6 on. */
function formatNumber(number: number): string {
  const [, exponentText = "0"] = number.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(number);
  const [digits] = number.toExponential().split("e");
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

function checkSign(value: ExpressionValue): ExpressionResult {
  const isNegative = value.kind === "number" ? value.number < 0 : value.quantity.unscaled < 0n;
  if (!isNegative) return value;
  const shown = value.kind === "number" ? formatNumber(value.number) : formatQuantity(value.quantity);
  return { kind: "failed", message: `calculation result is negative: ${shown}` };
}

/**
 * Numbers are float64; with a quantity the result is a quantity in thousandths, truncated towards zero. Never throws.
 * Source: OpenKruise pkg/util/calculator.
 */
export function evaluateResourceExpression(expression: string, variables: ExpressionVariables): ExpressionResult {
  const { steps, syntaxError } = parseResourceExpression(expression);
  const evaluation = new Evaluation(variables);
  for (const step of steps) evaluation.run(step);
  const { failure, result } = evaluation;
  if (syntaxError !== undefined || result === undefined) {
    return { kind: "failed", message: failure ?? syntaxError ?? "no result from parser" };
  }
  return checkSign(result);
}
