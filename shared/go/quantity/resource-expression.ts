/** Decides what a resource expression such as `max(cpu*50%, 50m)` comes to. */
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
import { parseResourceExpression, type Step } from "./resource-expression-parser.ts";

/** Lower-case name → value. */
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
 * Runs the steps. As in the reference a failed operation leaves no value, whatever needs it leaves none either, and
 * the last failure is the one that is told.
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

/** Go's %g: the shortest digits, with an exponent below 10^-4 and from 10^6 on. */
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
 * Numbers are float64; as soon as a quantity takes part it is a quantity in thousandths, cut off towards zero. Never
 * throws. Source: OpenKruise pkg/util/calculator.
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
