import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LabelSelector } from "../../../shared/api/kubernetes.ts";
import { selectorMatches } from "../../../shared/go/label-selector.ts";
import { selectorsOverlap } from "../../../shared/go/selector-overlap.ts";

const key = fc.constantFrom("a", "b", "c");
const value = fc.constantFrom("x", "y", "z");
const withValues = fc.record({
  key,
  operator: fc.constantFrom("In", "NotIn"),
  values: fc.array(value, { minLength: 1, maxLength: 3 }),
});
const withoutValues = fc.record({ key, operator: fc.constantFrom("Exists", "DoesNotExist") });
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  {
    matchLabels: fc.dictionary(key, value, { maxKeys: 2 }),
    matchExpressions: fc.array(fc.oneof(withValues, withoutValues), { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const labelsOnly = fc.record({ matchLabels: fc.dictionary(key, value, { maxKeys: 3 }) });

describe("two selectors", () => {
  it("overlap in both directions or in none", () => {
    fc.assert(
      fc.property(selector, selector, (one, other) => {
        expect(selectorsOverlap(one, other)).toBe(selectorsOverlap(other, one));
      }),
      { numRuns: 3000 },
    );
  });

  it("that ask for labels only overlap exactly when some labels satisfy both", () => {
    fc.assert(
      fc.property(labelsOnly, labelsOnly, (one, other) => {
        const labels = { ...one.matchLabels, ...other.matchLabels };
        const isPossible = selectorMatches(one, labels) === true && selectorMatches(other, labels) === true;
        expect(selectorsOverlap(one, other)).toBe(isPossible);
      }),
      { numRuns: 1000 },
    );
  });

  const of = (key: string, operator: string, ...values: readonly string[]): LabelSelector => ({
    matchExpressions: [{ key, operator, values }],
  });
  const any: LabelSelector = { matchLabels: { a: "x" } };
  const rows: readonly (readonly [sentence: string, one: LabelSelector, other: LabelSelector, overlap: boolean])[] = [
    ["of one value overlap", any, any, true],
    ["of two values of a label do not", any, { matchLabels: { a: "y" } }, false],
    ["of two labels do", any, { matchLabels: { b: "y" } }, true],
    ["In with the value", any, of("a", "In", "y", "x"), true],
    ["In without the value", any, of("a", "In", "y", "z"), false],
    ["In with one value in common", of("a", "In", "x", "y"), of("a", "In", "y", "z"), true],
    [
      "In twice, of which NotIn leaves a value",
      { matchExpressions: ["x", "y"].map((value) => ({ key: "a", operator: "In", values: [value] })) },
      of("a", "NotIn", "y"),
      true,
    ],
    [
      "In beside a label, of which NotIn leaves a value",
      { ...any, ...of("a", "In", "y") },
      of("a", "NotIn", "y"),
      true,
    ],
    ["In beside a label, with another value", { ...any, ...of("a", "In", "y") }, of("a", "In", "y"), false],
    ["In without values asks for nothing", of("a", "In"), of("a", "DoesNotExist"), true],
    ["NotIn with the value", any, of("a", "NotIn", "x"), false],
    ["NotIn without the value", any, of("a", "NotIn", "y"), true],
    ["NotIn with one of two values", of("a", "In", "x", "y"), of("a", "NotIn", "x"), true],
    ["NotIn of a label that nobody asks for", { matchLabels: { b: "x" } }, of("a", "NotIn", "x"), true],
    ["Exists with a value", any, of("a", "Exists"), true],
    ["Exists, which is any value", of("a", "Exists"), of("a", "In", "y"), true],
    ["Exists twice", of("a", "Exists"), of("a", "Exists"), true],
    ["Exists of a label that nobody asks for", { matchLabels: { b: "x" } }, of("a", "Exists"), false],
    ["DoesNotExist with a value", any, of("a", "DoesNotExist"), false],
    ["DoesNotExist and Exists", of("a", "Exists"), of("a", "DoesNotExist"), false],
    ["DoesNotExist twice", of("a", "DoesNotExist"), of("a", "DoesNotExist"), true],
    ["an unknown operator excludes nothing", any, of("a", "Near", "y"), true],
    ["empty ones overlap with everything", {}, any, true],
  ];
  it.each(rows)("%s", (_sentence, one, other, overlap) => {
    expect(selectorsOverlap(one, other)).toBe(overlap);
  });

  it("without values in an expression ask for none", () => {
    const bare: LabelSelector = { matchExpressions: [{ key: "a", operator: "In" }] };
    expect(selectorsOverlap(any, bare)).toBe(false);
    expect(selectorsOverlap(any, { matchExpressions: [{ key: "a", operator: "NotIn" }] })).toBe(true);
  });

  it("are left as they are", () => {
    const one = Object.freeze({ matchExpressions: Object.freeze([{ key: "a", operator: "Exists" }]) });
    expect(selectorsOverlap(one, one)).toBe(true);
  });
});
