import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LabelSelector } from "../../../shared/api/kubernetes.ts";
import { selectorMatches } from "../../../shared/core/lib/label-selector.ts";
import { selectorsOverlap } from "../../../shared/core/lib/selector-overlap.ts";

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

  it("are left as they are", () => {
    const one = Object.freeze({ matchExpressions: Object.freeze([{ key: "a", operator: "Exists" }]) });
    expect(selectorsOverlap(one, one)).toBe(true);
  });
});
