import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LabelSelector } from "../../../shared/api/kubernetes.ts";
import { selectorMatches, selectorsOverlap } from "../../../shared/go/label-selector.ts";

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

describe("selectorsOverlap", () => {
  it("the order of two selectors does not change whether they overlap", () => {
    fc.assert(
      fc.property(selector, selector, (one, other) => {
        expect(selectorsOverlap(one, other)).toBe(selectorsOverlap(other, one));
      }),
      { numRuns: 3000 },
    );
  });

  it("two selectors with only matchLabels overlap exactly when some labels satisfy both", () => {
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
    ["two equal selectors overlap", any, any, true],
    ["two values of the same label do not overlap", any, { matchLabels: { a: "y" } }, false],
    ["two different labels overlap", any, { matchLabels: { b: "y" } }, true],
    ["a label overlaps with an In that lists its value", any, of("a", "In", "y", "x"), true],
    ["a label does not overlap with an In that does not list its value", any, of("a", "In", "y", "z"), false],
    ["two In expressions with a common value overlap", of("a", "In", "x", "y"), of("a", "In", "y", "z"), true],
    [
      "two contradicting In expressions overlap with a NotIn that leaves one of their values",
      { matchExpressions: ["x", "y"].map((value) => ({ key: "a", operator: "In", values: [value] })) },
      of("a", "NotIn", "y"),
      true,
    ],
    [
      "a label and a contradicting In overlap with a NotIn that leaves one of their values",
      { ...any, ...of("a", "In", "y") },
      of("a", "NotIn", "y"),
      true,
    ],
    [
      "a label and a contradicting In do not overlap with an In that lacks the label's value",
      { ...any, ...of("a", "In", "y") },
      of("a", "In", "y"),
      false,
    ],
    ["an In without values overlaps with DoesNotExist", of("a", "In"), of("a", "DoesNotExist"), true],
    ["a label does not overlap with a NotIn of its value", any, of("a", "NotIn", "x"), false],
    ["a label overlaps with a NotIn of another value", any, of("a", "NotIn", "y"), true],
    ["an In of two values overlaps with a NotIn of one of them", of("a", "In", "x", "y"), of("a", "NotIn", "x"), true],
    [
      "a NotIn overlaps with a selector that does not name its label",
      { matchLabels: { b: "x" } },
      of("a", "NotIn", "x"),
      true,
    ],
    ["a label overlaps with Exists", any, of("a", "Exists"), true],
    ["Exists overlaps with an In of any value", of("a", "Exists"), of("a", "In", "y"), true],
    ["Exists overlaps with Exists", of("a", "Exists"), of("a", "Exists"), true],
    [
      "Exists does not overlap with a selector that does not name its label",
      { matchLabels: { b: "x" } },
      of("a", "Exists"),
      false,
    ],
    ["a label does not overlap with DoesNotExist", any, of("a", "DoesNotExist"), false],
    ["Exists does not overlap with DoesNotExist", of("a", "Exists"), of("a", "DoesNotExist"), false],
    ["DoesNotExist overlaps with DoesNotExist", of("a", "DoesNotExist"), of("a", "DoesNotExist"), true],
    ["an unknown operator excludes no other selector", any, of("a", "Near", "y"), true],
    ["an empty selector overlaps with every selector", {}, any, true],
  ];
  it.each(rows)("%s", (_sentence, one, other, overlap) => {
    expect(selectorsOverlap(one, other)).toBe(overlap);
  });

  it("a missing list of values counts as an empty list", () => {
    const bare: LabelSelector = { matchExpressions: [{ key: "a", operator: "In" }] };
    expect(selectorsOverlap(any, bare)).toBe(false);
    expect(selectorsOverlap(any, { matchExpressions: [{ key: "a", operator: "NotIn" }] })).toBe(true);
  });

  it("selectorsOverlap does not change its arguments", () => {
    const one = Object.freeze({ matchExpressions: Object.freeze([{ key: "a", operator: "Exists" }]) });
    expect(selectorsOverlap(one, one)).toBe(true);
  });
});
