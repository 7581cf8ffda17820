import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { formatQuantity, parseQuantity } from "../../../shared/go/quantity/quantity.ts";
import { evaluateResourceExpression } from "../../../shared/go/quantity/resource-expression.ts";
import { type ExpressionValue, toInt64 } from "../../../shared/go/quantity/resource-expression-arithmetic.ts";

function quantity(text: string): ExpressionValue {
  const parsed = parseQuantity(text);
  if (parsed === undefined) throw new Error(`${text} is no quantity`);
  return { kind: "quantity", quantity: parsed };
}

const VARIABLES = new Map<string, ExpressionValue>([
  ["cpu", quantity("200m")],
  ["memory", quantity("256Mi")],
  ["one", { kind: "number", number: 1 }],
]);

function show(expression: string): string | number {
  const result = evaluateResourceExpression(expression, VARIABLES);
  if (result.kind === "failed") return `! ${result.message}`;
  return result.kind === "number" ? result.number : formatQuantity(result.quantity);
}

describe("evaluateResourceExpression", () => {
  const rows: readonly (readonly [string, string, string | number])[] = [
    ["a variable may be written in upper case", "CPU", "200m"],
    ["a percentage is read as a fraction", "50%", 0.5],
    ["a quantity is multiplied by a number on its left", "2*cpu", "400m"],
    ["a quantity is multiplied by a number on its right", "cpu*0.5", "100m"],
    ["two numbers are multiplied", "2*3", 6],
    ["two numbers are divided", "3/2", 1.5],
    ["a number is added to a quantity", "cpu+1", "1200m"],
    ["a quantity is added to a number", "1+cpu", "1200m"],
    ["a quantity is subtracted from a number", "1-cpu", "800m"],
    ["a number is subtracted from a quantity", "1-cpu-0.3", "500m"],
    ["max of two numbers is a number", "max(0.0001,0.0002)", 0.0002],
    ["min of two numbers is a number", "MIN(0.0001,0.0002)", 0.0001],
    ["max of two equal values keeps the format of the first", "max(memory, 268435456)", "256Mi"],
    ["min of two equal values keeps the format of the first", "min(268435456m*1000, memory)", "268435456"],
    ["an expression ends at a NUL character", "1\0+", 1],
    ["a sum of six hundred terms is read", `0${"+1".repeat(600)}`, 600],
    ["a product is computed before a sum", "1+2*3", 7],
    ["a subtraction is computed from left to right", "10-2-3", 5],
    ["a number may have an exponent", "1e+2", 100],
    ["a number may be negated", "3--1", 4],
    ["a quotient is cut off to thousandths", "cpu/3", "66m"],
    ["a product keeps the binary suffix of its quantity", "memory*2", "512Mi"],
    ["a result that is not binary is printed in thousandths", "memory*0.001", "268435456m"],
    ["max of a number and a quantity is a quantity", "max(0.5, 50m)", "500m"],
    ["max of 1000m and 1 is 1", "max(1000m, 1)", "1"],
    ["min of a quantity and a number is the smaller one", "min(cpu, 1)", "200m"],
    ["quantities with different suffixes are added", "3Mi+1Ki", "3073Ki"],
    ["a malformed number counts as 0", "1e", 0],
    ["a percentage followed by a letter counts as 0", "10%cpu", 0],
    ["white space and line ends are ignored", " 1\n+\t1 ", 2],
  ];
  it.each(rows)("%s", (_sentence, expression, result) => {
    expect(show(expression)).toBe(result);
  });
});

describe("errors of evaluateResourceExpression", () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ["an empty expression is a syntax error", "", "parse error: syntax error at line 1, col 1"],
    ["a syntax error names its line and column", "1+\n*", "parse error: syntax error at line 2, col 2"],
    ["a call without arguments is a syntax error", "max(", "parse error: syntax error at line 1, col 5"],
    ["a call that ends after a comma is a syntax error", "max(1,", "parse error: syntax error at line 1, col 7"],
    ["a call without a closing parenthesis is a syntax error", "max(1,2", "parse error: syntax error at line 1, col 8"],
    ["max fails when one of its arguments fails", "max(1/0,1)", "division by zero"],
    ["min fails when one of its arguments fails", "min(1,foo)", "undefined variable: foo"],
    ["a negation fails when its operand fails", "-foo", "undefined variable: foo"],
    [
      "a function with one argument fails inside a sum",
      "1+max(2)+3",
      "max function requires exactly 2 arguments, got 1",
    ],
    ["two operands without an operator are a syntax error", "cpu 1", "parse error: syntax error at line 1, col 6"],
    ["a division by zero is reported before a later syntax error", "1/0 )", "division by zero"],
    ["the last of two undefined variables is reported", "foo+bar", "undefined variable: bar"],
    ["a division by zero fails", "cpu/0", "division by zero"],
    ["a division by a quantity fails", "1/cpu", "division by quantity"],
    ["a multiplication of two quantities fails", "cpu*cpu", "multiplication of two quantities"],
    ["the error names an unknown function as it is written", "Avg(1,2)", "unknown function: Avg"],
    ["a function with one argument fails", "MIN(1)", "min function requires exactly 2 arguments, got 1"],
    ["a function with three arguments is a syntax error", "max(1,2,3)", "parse error: syntax error at line 1, col 9"],
    ["a negative quantity fails", "100m-cpu", "calculation result is negative: -100m"],
    ["a very large negative number fails", "-1e21", "calculation result is negative: -1e+21"],
    ["a small negative number fails", "-0.0001", "calculation result is negative: -0.0001"],
    ["a result of minus a million is printed with an exponent", "-1000000", "calculation result is negative: -1e+06"],
    ["a result of -999999 is printed without an exponent", "-999999", "calculation result is negative: -999999"],
    ["a tiny negative number is printed with an exponent", "-0.00001", "calculation result is negative: -1e-05"],
    [
      "an expression that opens 5,000 parentheses is a syntax error",
      `${"(".repeat(5000)}1`,
      "parse error: syntax error at line 1, col 502",
    ],
  ];
  it.each(rows)("%s", (_sentence, expression, message) => {
    expect(show(expression)).toBe(`! ${message}`);
  });
});

test("toInt64 cuts off fractions, and turns a number outside of int64 into the smallest int64", () => {
  expect([2 ** 63, 1e300, Number.NaN, -Infinity].map(toInt64)).toEqual(Array(4).fill(-(2n ** 63n)));
  expect([1.9, -1.9, -(2 ** 63), 2 ** 53].map(toInt64)).toEqual([1n, -1n, -(2n ** 63n), 2n ** 53n]);
});

function ordered(x: bigint, y: bigint): readonly [bigint, bigint] {
  return x < y ? [x, y] : [y, x];
}

/** A sum of quantities, and its value in thousandths. */
type Sum = readonly [string, bigint];

const { sum } = fc.letrec<{ sum: Sum; leaf: Sum }>((tie) => ({
  leaf: fc.bigInt({ min: 0n, max: 10n ** 12n }).map((milli): Sum => [`${milli}m`, milli]),
  sum: fc.oneof(
    { maxDepth: 4, depthSize: "medium" },
    tie("leaf"),
    fc.tuple(tie("sum"), tie("sum")).map(([[a, x], [b, y]]): Sum => [`${a} + ${b}`, x + y]),
    fc.tuple(tie("sum"), tie("sum")).map(([[a, x], [b, y]]): Sum => [`${a}-(${b})`, x - y]),
    tie("sum").map(([a, x]): Sum => [`-(${a})`, -x]),
    fc.tuple(tie("sum"), tie("sum")).map(([[a, x], [b, y]]): Sum => [`max(${a},${b})`, ordered(x, y)[1]]),
    fc.tuple(tie("sum"), tie("sum")).map(([[a, x], [b, y]]): Sum => [`min( ${a}, ${b} )`, ordered(x, y)[0]]),
    fc
      .tuple(tie("sum"), fc.integer({ min: 0, max: 8 }))
      .map(([[a, x], factor]): Sum => [`(${a})*${factor}`, x * BigInt(factor)]),
  ),
}));

describe("generated expressions", () => {
  it("an expression of quantities is exact to the thousandth", () => {
    fc.assert(
      fc.property(sum, ([expression, milli]) => {
        const result = evaluateResourceExpression(expression, VARIABLES);
        if (milli < 0n) expect(result.kind).toBe("failed");
        else expect(result).toMatchObject({ kind: "quantity", quantity: parsedMilli(milli) });
      }),
      { numRuns: 3000 },
    );
  });

  it("evaluateResourceExpression answers any text without an exception", () => {
    const piece = fc.constantFrom(..."0123456789.+-*/(),%eE mkMGTPi".split(""), "cpu", "max", "min", "\n", "é", "\0");
    const text = fc.oneof(
      fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join("")),
      fc.string(),
    );
    fc.assert(
      fc.property(text, (expression) => {
        expect(["number", "quantity", "failed"]).toContain(evaluateResourceExpression(expression, VARIABLES).kind);
      }),
      { numRuns: 3000 },
    );
  });
});

/** Returns the value, independent of how it is stored. */
function parsedMilli(milli: bigint): unknown {
  return {
    asymmetricMatch: (actual: { readonly unscaled: bigint; readonly scale: number }) =>
      actual.unscaled * 10n ** BigInt(actual.scale + 3) === milli,
  };
}
