/** The rows of the helpers' vectors about expressions, merge patches and selectors: helper name → suite. */
import type { LabelSelector } from "../../../shared/api/kubernetes.ts";
import { mergePatch } from "../../../shared/core/lib/merge-patch.ts";
import { formatQuantity, parseQuantity } from "../../../shared/core/lib/quantity.ts";
import { type ExpressionVariables, evaluateResourceExpression } from "../../../shared/core/lib/resource-expression.ts";
import type { ExpressionValue } from "../../../shared/core/lib/resource-expression-arithmetic.ts";
import { selectorsOverlap } from "../../../shared/core/lib/selector-overlap.ts";
import { compare, type Difference } from "../compare.ts";
import type { SuiteTable } from "../suite.ts";

interface ExpressionInput {
  readonly value: string;
  readonly vars?: Readonly<Record<string, string>>;
  readonly numVars?: Readonly<Record<string, number>>;
}

function quantityValue(text: string): ExpressionValue {
  const quantity = parseQuantity(text);
  if (quantity === undefined) throw new Error(`the vector's variable ${text} is no quantity`);
  return { kind: "quantity", quantity };
}

function variablesOf({ vars = {}, numVars = {} }: ExpressionInput): ExpressionVariables {
  return new Map<string, ExpressionValue>([
    ...Object.entries(vars).map(([name, text]) => [name, quantityValue(text)] as const),
    ...Object.entries(numVars).map(([name, number]) => [name, { kind: "number", number }] as const),
  ]);
}

function resourceExpression(input: ExpressionInput, expected: unknown): readonly Difference[] {
  const result = evaluateResourceExpression(input.value, variablesOf(input));
  if (result.kind === "failed") return compare({ error: result.message }, expected);
  return result.kind === "number"
    ? compare({ number: result.number }, expected)
    : compare({ quantity: formatQuantity(result.quantity) }, expected);
}

function mergePatchOf(
  { value, patch }: { readonly value: string; readonly patch: string },
  expected: unknown,
): readonly Difference[] {
  const result = mergePatch(value, patch);
  return compare(result.kind === "merged" ? { result: result.text } : { error: result.message }, expected);
}

function overlap(
  { a, b }: { readonly a: LabelSelector; readonly b: LabelSelector },
  expected: unknown,
): readonly Difference[] {
  return compare({ overlapping: selectorsOverlap(a, b) }, expected);
}

export const textHelperRows: SuiteTable = {
  "resource-expr": resourceExpression,
  "merge-patch": mergePatchOf,
  "selector-overlap": overlap,
};
