/** Tests small pure functions of the reference: one row for each kind. */
import type { LabelSelector, Labels, Quantity } from "../../../shared/api/kubernetes.ts";
import { defaultImagePullPolicy } from "../../../shared/core/sidecarset/defaults/pod-parts.ts";
import { revisionHash } from "../../../shared/core/sidecarset/hash/sidecarset-hash.ts";
import { goJson } from "../../../shared/go/json/go-json.ts";
import { mergePatch } from "../../../shared/go/json/merge-patch.ts";
import { isEmptySelector, selectorMatches, selectorsOverlap } from "../../../shared/go/label-selector.ts";
import { formatQuantity, parseQuantity, readQuantity } from "../../../shared/go/quantity/quantity.ts";
import { integerValue, milliValue, roundUpToMilli } from "../../../shared/go/quantity/quantity-arithmetic.ts";
import { evaluateResourceExpression } from "../../../shared/go/quantity/resource-expression.ts";
import type { ExpressionValue } from "../../../shared/go/quantity/resource-expression-arithmetic.ts";
import { compare, type Difference } from "../compare.ts";

function quantity({ value }: { readonly value: string }): unknown {
  const read = readQuantity(value);
  if ("kind" in read) return { error: read.message };
  return {
    canonical: formatQuantity(read),
    afterDefaulting: formatQuantity(roundUpToMilli(read)),
    milliValue: String(milliValue(read)),
    value: String(integerValue(read)),
  };
}

function selectorMatch({ a, labels }: { readonly a: LabelSelector; readonly labels: Labels }): unknown {
  const matches = selectorMatches(a, labels);
  return typeof matches === "object" ? { error: matches.message } : { empty: isEmptySelector(a), matches };
}

function mergedText({ value, patch }: { readonly value: string; readonly patch: string }): unknown {
  const merged = mergePatch(value, patch);
  return merged.kind === "merged" ? { result: merged.text } : { error: merged.message };
}

interface ExpressionInput {
  readonly value: string;
  readonly vars?: Readonly<Record<string, Quantity>>;
  readonly numVars?: Readonly<Record<string, number>>;
}

function quantityValue(text: Quantity): ExpressionValue {
  const parsed = parseQuantity(text);
  if (parsed === undefined) throw new Error(`the vector's variable ${text} is no quantity`);
  return { kind: "quantity", quantity: parsed };
}

function resourceExpression({ value, vars = {}, numVars = {} }: ExpressionInput): unknown {
  const variables = new Map<string, ExpressionValue>([
    ...Object.entries(vars).map(([name, text]) => [name, quantityValue(text)] as const),
    ...Object.entries(numVars).map(([name, number]) => [name, { kind: "number", number }] as const),
  ]);
  const result = evaluateResourceExpression(value, variables);
  if (result.kind === "failed") return { error: result.message };
  return result.kind === "number" ? { number: result.number } : { quantity: formatQuantity(result.quantity) };
}

const HELPERS: Readonly<Record<string, (input: never) => unknown>> = {
  quantity,
  "image-pull-policy": ({ value }: { value: string }) => ({ imagePullPolicy: defaultImagePullPolicy(value) }),
  "go-json": ({ value }: { value: unknown }) => ({ json: goJson(value) }),
  "selector-match": selectorMatch,
  "selector-overlap": ({ a, b }: { a: LabelSelector; b: LabelSelector }) => ({ overlapping: selectorsOverlap(a, b) }),
  "revision-hash": ({ data, collisionCount }: { data: string; collisionCount?: number }) => ({
    hash: revisionHash(data, collisionCount),
  }),
  "merge-patch": mergedText,
  "resource-expr": resourceExpression,
};

export function helpersSuite(input: { readonly helper: string }, expected: unknown): readonly Difference[] {
  const helper = HELPERS[input.helper];
  if (helper === undefined) throw new Error(`there is no helper "${input.helper}"`);
  return compare(helper(input as never), expected);
}
