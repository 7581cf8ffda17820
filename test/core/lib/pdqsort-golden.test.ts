import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pdqsort } from "../../../shared/go/pdqsort.ts";

interface Golden {
  readonly sizes: readonly number[];
  readonly checksums: Readonly<Record<string, readonly number[]>>;
  readonly killers: readonly { readonly keys: readonly number[]; readonly checksum: number }[];
}

/** The order in which Go's sort.Slice leaves equal elements. golden/sort.go prints it. */
const golden: Golden = JSON.parse(readFileSync(join(import.meta.dirname, "golden/sort.json"), "utf8"));

type KeyAt = (i: number, n: number, random: (limit: number) => number) => number;

const SHAPES: Readonly<Record<string, KeyAt>> = {
  "two keys": (_i, _n, random) => random(2),
  "few keys": (_i, _n, random) => random(7),
  "many keys": (_i, n, random) => random(n),
  "rising pairs": (i) => Math.floor(i / 2),
  "falling pairs": (i, n) => Math.floor((n - i) / 2),
  "falling, some are equal": (i, n) => (i % 5 === 0 ? n - i - 1 : n - i),
  falling: (i, n) => n - i,
  hill: (i, n) => Math.min(i, n - i),
  teeth: (i) => i % 9,
  "almost rising": (i, n, random) => (random(30) === 0 ? random(n) : Math.floor(i / 3)),
  "rising, the end is not": (i, n, random) => (i > n - 4 ? random(n) : Math.floor(i / 3)),
};

/** Returns the same numbers as the generator in golden/sort.go. */
function xorshift(): (limit: number) => number {
  let state = 2463534242;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

/** Returns FNV-1a over the elements' earlier positions. */
function checksum(keys: readonly number[]): number {
  const sorted = pdqsort(
    keys.map((key, at) => ({ key, at })),
    (a, b) => a.key < b.key,
  );
  let hash = 0x811c9dc5;
  for (const character of sorted.map(({ at }) => `${at},`).join("")) {
    hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
  }
  return hash;
}

test("the golden file has an order for every shape of input", () => {
  expect(Object.keys(golden.checksums).sort()).toEqual(Object.keys(SHAPES).sort());
  expect(golden.sizes.length).toBeGreaterThan(80);
  expect(golden.killers.length).toBeGreaterThan(0);
});

test.each(Object.entries(SHAPES))(
  "pdqsort leaves equal elements where Go leaves them for this shape of input: %s",
  (shape, keyAt) => {
    const random = xorshift();
    const sums = golden.sizes.map((n) => checksum(Array.from({ length: n }, (_, i) => keyAt(i, n, random))));
    expect(sums).toEqual(golden.checksums[shape]);
  },
);

test.each(golden.killers)(
  "pdqsort leaves equal elements where Go leaves them for $keys.length keys that make its pivots bad (list %#)",
  ({ keys, checksum: sum }) => {
    expect(checksum(keys)).toBe(sum);
  },
);
