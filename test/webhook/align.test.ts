import fc from "fast-check";
import { expect, test } from "vitest";
import { align } from "../../shared/webhook/review/align.ts";

/** The oracle: how long the longest list in both is, by trying everything. */
function longest([first, ...rest]: readonly string[], to: readonly string[]): number {
  if (first === undefined) return 0;
  const at = to.indexOf(first);
  const without = longest(rest, to);
  return at < 0 ? without : Math.max(without, 1 + longest(rest, to.slice(at + 1)));
}

const list = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 7 });

test("what is paired is the same in both, in order, and as much as can be", () => {
  fc.assert(
    fc.property(list, list, (from, to) => {
      const pairs = align(from, to) ?? [];
      expect(pairs.map(([a]) => from[a])).toEqual(pairs.map(([, b]) => to[b]));
      for (const side of [0, 1] as const) {
        const indexes = pairs.map((pair) => pair[side]);
        expect(indexes).toEqual([...new Set(indexes)].toSorted((a, b) => a - b));
        expect(Math.max(-1, ...indexes)).toBeLessThan([from, to][side]?.length ?? 0);
      }
      expect(pairs).toHaveLength(longest(from, to));
    }),
    { numRuns: 3_000 },
  );
});

test.each([
  ["no lists", [], [], []],
  ["equal lists", ["a", "b"], ["a", "b"], [0, 1]],
  ["a longer one", ["a"], ["a", "a"], [0]],
  ["what is in the middle", ["x", "a", "y"], ["a", "z"], [1]],
])("of %s nothing is paired that is not there", (_, from, to, paired) => {
  expect(align(from, to)?.map(([a]) => a)).toEqual(paired);
});

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

test("a million comparisons are made, and not one more", () => {
  expect(align(names("a", 1_000), names("b", 1_000))).toEqual([]);
  expect(align(names("a", 1_001), names("b", 1_000))).toBeUndefined();
});

test("what two long lists begin and end with is not compared", () => {
  const same = names("a", 1_500);
  expect(align([...same, "x"], [...same, "y"])).toHaveLength(1_500);
  expect(align(["x", ...same], ["y", ...same])).toHaveLength(1_500);
  expect(align([...same, "x", ...same], [...same, "y", ...same])).toHaveLength(3_000);
});
