import fc from "fast-check";
import { expect, test } from "vitest";
import { align } from "../../shared/webhook/review/align.ts";

/** Returns the length of the longest common list, found by trying all. */
function longest([first, ...rest]: readonly string[], to: readonly string[]): number {
  if (first === undefined) return 0;
  const at = to.indexOf(first);
  const without = longest(rest, to);
  return at < 0 ? without : Math.max(without, 1 + longest(rest, to.slice(at + 1)));
}

const list = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 7 });

test("align pairs equal elements in order and finds the longest common list", () => {
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
  ["two empty lists", [], [], []],
  ["two equal lists", ["a", "b"], ["a", "b"], [0, 1]],
  ["a list and a longer one", ["a"], ["a", "a"], [0]],
  ["lists with one common element in the middle", ["x", "a", "y"], ["a", "z"], [1]],
])("align pairs exactly the common elements of %s", (_, from, to, paired) => {
  expect(align(from, to)?.map(([a]) => a)).toEqual(paired);
});

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

test("align makes at most a million comparisons and gives up beyond that", () => {
  expect(align(names("a", 1_000), names("b", 1_000))).toEqual([]);
  expect(align(names("a", 1_001), names("b", 1_000))).toBeUndefined();
});

test("align does not compare the common beginning and end of two long lists", () => {
  const same = names("a", 1_500);
  expect(align([...same, "x"], [...same, "y"])).toHaveLength(1_500);
  expect(align(["x", ...same], ["y", ...same])).toHaveLength(1_500);
  expect(align([...same, "x", ...same], [...same, "y", ...same])).toHaveLength(3_000);
});
