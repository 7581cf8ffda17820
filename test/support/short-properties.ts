/** Setup: tries properties on few cases, the same in each run. `npm run test:all` tries all of them at random. */
import type { Arbitrary, IRawProperty, Parameters } from "fast-check";
import { vi } from "vitest";

const MOST_RUNS = 60;
const SEED = 1;

vi.mock("fast-check", async (importOriginal) => {
  const original = await importOriginal<typeof import("fast-check")>();
  const assert = <T>(property: IRawProperty<T>, parameters: Parameters<T> = {}): void | Promise<void> =>
    original.assert(property, {
      seed: SEED,
      ...parameters,
      numRuns: Math.min(parameters.numRuns ?? MOST_RUNS, MOST_RUNS),
    });
  return { ...original, assert, default: { ...original.default, assert } };
});

/** Short runs need not contain every class of a property. */
vi.mock("../properties/holds.ts", async () => {
  const { assert, property } = await vi.importActual<typeof import("fast-check")>("fast-check");
  const holds = <T>(
    arbitrary: Arbitrary<T>,
    _classes: readonly string[],
    predicate: (value: T, seen: () => void) => void,
  ) =>
    assert(
      property(arbitrary, (value) => predicate(value, () => undefined)),
      { seed: SEED, numRuns: MOST_RUNS },
    );
  return { holds };
});
