import { array, check, integer, nat, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { pdqsort } from "../../../shared/go/pdqsort.ts";

interface Item {
  readonly key: number;
  readonly at: number;
}

const items = (keys: readonly number[]): Item[] => keys.map((key, at) => ({ key, at }));
const byKey = (a: Item, b: Item) => a.key < b.key;
const keysOf = (list: readonly Item[]) => list.map(({ key }) => key);
const holds = (run: { readonly failed: boolean }) => expect(run).toMatchObject({ failed: false });

/** Lists that are long enough to be partitioned, with few or many equal keys. */
const lists = array(nat(40), { maxLength: 300 });

/** McIlroy's adversary: it chooses an element's value only when asked, so that each pivot is among the smallest. */
class Adversary {
  comparisons = 0;
  private readonly values: (number | undefined)[];
  private solid = 0;
  private candidate = 0;

  constructor(size: number) {
    this.values = Array.from({ length: size });
  }

  isLess(x: number, y: number): boolean {
    this.comparisons++;
    const isOpen = (at: number) => this.values[at] === undefined;
    if (isOpen(x) && isOpen(y)) this.values[y === this.candidate ? y : x] = this.solid++;
    if (isOpen(x)) this.candidate = x;
    if (isOpen(y)) this.candidate = y;
    return (this.values[x] ?? Number.POSITIVE_INFINITY) < (this.values[y] ?? Number.POSITIVE_INFINITY);
  }
}

describe("pdqsort", () => {
  test("a typed array of numbers is sorted in place", () => {
    const numbers = Uint32Array.from({ length: 100 }, (_, index) => (index * 37) % 100);
    expect(pdqsort(numbers, (a: number, b) => a < b)).toBe(numbers);
    expect([...numbers]).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  test("every list is sorted and keeps all its elements", () => {
    holds(
      check(
        property(lists, (keys) => {
          const sorted = pdqsort(items(keys), byKey);
          expect(keysOf(sorted)).toEqual(keys.toSorted((a, b) => a - b));
          expect(new Set(sorted.map(({ at }) => at)).size).toBe(keys.length);
        }),
        { numRuns: 600 },
      ),
    );
  });

  test("a list of up to 12 elements is sorted stably", () => {
    holds(
      check(
        property(array(nat(3), { maxLength: 12 }), (keys) => {
          expect(pdqsort(items(keys), byKey)).toEqual(items(keys).toSorted((a, b) => a.key - b.key));
        }),
        { numRuns: 400 },
      ),
    );
  });

  test("lists that are bad for quicksort need few comparisons", () => {
    const size = 2000;
    const ascending = Array.from({ length: size }, (_, index) => index);
    const shapes = {
      ascending,
      descending: ascending.toReversed(),
      equal: ascending.map(() => 1),
      organ: ascending.map((index) => Math.min(index, size - index)),
      sawtooth: ascending.map((index) => index % 17),
      almost: ascending.map((index) => (index % 500 === 499 ? 0 : index)),
    };
    for (const keys of Object.values(shapes)) {
      let comparisons = 0;
      const sorted = pdqsort(items(keys), (a, b) => {
        comparisons++;
        return byKey(a, b);
      });
      expect(keysOf(sorted)).toEqual(keys.toSorted((a, b) => a - b));
      expect(comparisons).toBeLessThan(size * 40);
    }
  });

  test("a list that makes every pivot bad needs few comparisons", () => {
    const size = 1000;
    const adversary = new Adversary(size);
    pdqsort(
      Array.from({ length: size }, (_, index) => index),
      (x, y) => adversary.isLess(x, y),
    );
    expect(adversary.comparisons).toBeLessThan(size * 60);
  });

  test("numbers are sorted in descending order", () => {
    holds(
      check(
        property(array(integer(), { maxLength: 60 }), (numbers) => {
          expect(pdqsort([...numbers], (a, b) => a > b)).toEqual(numbers.toSorted((a, b) => b - a));
        }),
        { numRuns: 100 },
      ),
    );
  });
});
