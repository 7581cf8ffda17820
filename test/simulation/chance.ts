/** A random generator that repeats itself: the same seed gives the same numbers. */

export interface Chance {
  /** Returns a number in [0, 1). */
  readonly next: () => number;
  /** Returns a whole number, 0 … limit - 1. */
  readonly below: (limit: number) => number;
  /** Returns a whole number between both ends, ends included. */
  readonly between: (least: number, most: number) => number;
  readonly isLucky: (probability: number) => boolean;
  readonly pick: <T>(items: readonly T[]) => T;
}

/** Source: mulberry32. The seed is hashed first, so that neighbouring seeds give unrelated numbers. */
export function seededChance(seed: number, stream = 0): Chance {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35);
  state ^= Math.floor(seed / 2 ** 32) * 0x27d4eb2f;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    between: (least, most) => least + below(most - least + 1),
    isLucky: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
  };
}
