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

describe("an expression", () => {
  const rows: readonly (readonly [string, string, string | number])[] = [
    ["takes a variable in any case", "CPU", "200m"],
    ["reads a percentage", "50%", 0.5],
    ["multiplies from the left", "2*cpu", "400m"],
    ["multiplies from the right", "cpu*0.5", "100m"],
    ["multiplies numbers", "2*3", 6],
    ["divides numbers", "3/2", 1.5],
    ["adds a number to a quantity", "cpu+1", "1200m"],
    ["adds a quantity to a number", "1+cpu", "1200m"],
    ["subtracts a quantity from a number", "1-cpu", "800m"],
    ["subtracts a number from a quantity", "1-cpu-0.3", "500m"],
    ["takes the larger of two numbers, as a number", "max(0.0001,0.0002)", 0.0002],
    ["takes the smaller of two numbers, as a number", "MIN(0.0001,0.0002)", 0.0001],
    ["takes the first of equals, as it was written", "max(memory, 268435456)", "256Mi"],
    ["takes the first of equals, also the smaller one", "min(268435456m*1000, memory)", "268435456"],
    ["ends at a NUL", "1\0+", 1],
    ["reads six hundred terms side by side", `0${"+1".repeat(600)}`, 600],
    ["binds products before sums", "1+2*3", 7],
    ["reads from the left", "10-2-3", 5],
    ["reads an exponent", "1e+2", 100],
    ["negates", "3--1", 4],
    ["cuts a product off to thousandths", "cpu/3", "66m"],
    ["keeps a quantity's suffixes", "memory*2", "512Mi"],
    ["shows what is not binary in thousandths", "memory*0.001", "268435456m"],
    ["turns a number beside a quantity into one", "max(0.5, 50m)", "500m"],
    ["takes the first of equals", "max(1000m, 1)", "1"],
    ["takes the smaller", "min(cpu, 1)", "200m"],
    ["adds across suffixes", "3Mi+1Ki", "3073Ki"],
    ["counts a malformed number as 0", "1e", 0],
    ["counts a percentage that runs on as 0", "10%cpu", 0],
    ["looks over white space and lines", " 1\n+\t1 ", 2],
  ];
  it.each(rows)("%s: %s", (_sentence, expression, result) => {
    expect(show(expression)).toBe(result);
  });
});

describe("an expression that fails", () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ["has nothing in it", "", "parse error: syntax error at line 1, col 1"],
    ["breaks off on its second line", "1+\n*", "parse error: syntax error at line 2, col 2"],
    ["has a call without arguments", "max(", "parse error: syntax error at line 1, col 5"],
    ["has a call that breaks off", "max(1,", "parse error: syntax error at line 1, col 7"],
    ["has a call that is not closed", "max(1,2", "parse error: syntax error at line 1, col 8"],
    ["takes a maximum of what failed", "max(1/0,1)", "division by zero"],
    ["takes a minimum of what failed", "min(1,foo)", "undefined variable: foo"],
    ["negates what failed", "-foo", "undefined variable: foo"],
    ["gives one argument inside of a sum", "1+max(2)+3", "max function requires exactly 2 arguments, got 1"],
    ["has an operand too many", "cpu 1", "parse error: syntax error at line 1, col 6"],
    ["tells what it computed wrongly before the syntax error", "1/0 )", "division by zero"],
    ["tells the last of several", "foo+bar", "undefined variable: bar"],
    ["divides by zero", "cpu/0", "division by zero"],
    ["divides by a quantity", "1/cpu", "division by quantity"],
    ["multiplies quantities", "cpu*cpu", "multiplication of two quantities"],
    ["names an unknown function as it is written", "Avg(1,2)", "unknown function: Avg"],
    ["gives a function one argument", "MIN(1)", "min function requires exactly 2 arguments, got 1"],
    ["gives a function three arguments", "max(1,2,3)", "parse error: syntax error at line 1, col 9"],
    ["comes out negative", "100m-cpu", "calculation result is negative: -100m"],
    ["comes out hugely negative", "-1e21", "calculation result is negative: -1e+21"],
    ["comes out negative and small", "-0.0001", "calculation result is negative: -0.0001"],
    ["comes out as minus a million", "-1000000", "calculation result is negative: -1e+06"],
    ["comes out just below", "-999999", "calculation result is negative: -999999"],
    ["comes out negative and tiny", "-0.00001", "calculation result is negative: -1e-05"],
    ["is nested too deeply", `${"(".repeat(5000)}1`, "parse error: syntax error at line 1, col 502"],
  ];
  it.each(rows)("%s: %s", (_sentence, expression, message) => {
    expect(show(expression)).toBe(`! ${message}`);
  });
});

test("an integer that Go's int64 cannot hold becomes its smallest", () => {
  expect([2 ** 63, 1e300, Number.NaN, -Infinity].map(toInt64)).toEqual(Array(4).fill(-(2n ** 63n)));
  expect([1.9, -1.9, -(2 ** 63), 2 ** 53].map(toInt64)).toEqual([1n, -1n, -(2n ** 63n), 2n ** 53n]);
});

function ordered(x: bigint, y: bigint): readonly [bigint, bigint] {
  return x < y ? [x, y] : [y, x];
}

/** A sum of quantities in thousandths, and what it comes to. */
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

describe("any expression", () => {
  it("over quantities is exact to the thousandth", () => {
    fc.assert(
      fc.property(sum, ([expression, milli]) => {
        const result = evaluateResourceExpression(expression, VARIABLES);
        if (milli < 0n) expect(result.kind).toBe("failed");
        else expect(result).toMatchObject({ kind: "quantity", quantity: parsedMilli(milli) });
      }),
      { numRuns: 3000 },
    );
  });

  it("has an answer, whatever its text is", () => {
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

/** The value, independent of how it is held. */
function parsedMilli(milli: bigint): unknown {
  return {
    asymmetricMatch: (actual: { readonly unscaled: bigint; readonly scale: number }) =>
      actual.unscaled * 10n ** BigInt(actual.scale + 3) === milli,
  };
}
