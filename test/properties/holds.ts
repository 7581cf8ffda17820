/** Tests properties, and requires that all classes of cases occur. */
import fc from "fast-check";
import { expect, vi } from "vitest";

/** Counts the case for a class, unless `isSeen` is false. */
type Seen = (what: string, isSeen?: boolean) => void;

const CASES = 2_000;

// Thousands of cases take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

/** fast-check prints seed and path of a case that fails: `fc.assert(…, { seed, path })` repeats it. */
export function holds<T>(
  arbitrary: fc.Arbitrary<T>,
  classes: readonly string[],
  predicate: (value: T, seen: Seen) => void,
  least: number = CASES,
): void {
  const counts = new Map(classes.map((name) => [name, 0]));
  let cases = 0;
  const seen: Seen = (what, isSeen = true) => {
    const count = counts.get(what);
    if (count === undefined) throw new Error(`${what} is no class of this property`);
    if (isSeen) counts.set(what, count + 1);
  };
  const property = fc.property(arbitrary, (value) => {
    cases++;
    predicate(value, seen);
  });
  fc.assert(property, { numRuns: least });
  expect(cases).toBeGreaterThanOrEqual(least);
  const missing = [...counts].filter(([, count]) => count === 0).map(([name]) => name);
  expect(missing, `classes that did not come up in ${cases} cases`).toEqual([]);
}
