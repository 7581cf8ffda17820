import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatQuantity, parseQuantity } from "../../../shared/core/lib/quantity.ts";
import { evaluateResourceExpression } from "../../../shared/core/lib/resource-expression.ts";
import type { ExpressionValue } from "../../../shared/core/lib/resource-expression-arithmetic.ts";

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
    ["comes out negative and tiny", "-0.00001", "calculation result is negative: -1e-05"],
    ["is nested too deeply", `${"(".repeat(5000)}1`, "parse error: syntax error at line 1, col 502"],
  ];
  it.each(rows)("%s: %s", (_sentence, expression, message) => {
    expect(show(expression)).toBe(`! ${message}`);
  });
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
