/** Ordered members: an array, or an object that creates each on access, so that 150,000 need not exist at once. */
export interface Sequence<T> extends Iterable<T> {
  readonly length: number;
  /** the member at a place; undefined: there is no such place */
  at(place: number): T | undefined;
}

/** Like for … of, which takes several times as long for members created on access. */
export function each<T>(items: Sequence<T>, visit: (item: T, place: number) => void): void {
  for (let place = 0; place < items.length; place++) visit(items.at(place) as T, place);
}

/** The items for which `isOne` holds, as a list. */
export function where<T>(items: Sequence<T>, isOne: (item: T) => boolean): readonly T[] {
  const found: T[] = [];
  each(items, (item) => {
    if (isOne(item)) found.push(item);
  });
  return found;
}

/** The number of items for which `isOne` holds, without a list of them. */
export function countOf<T>(items: Sequence<T>, isOne: (item: T) => boolean): number {
  let count = 0;
  each(items, (item) => {
    if (isOne(item)) count++;
  });
  return count;
}

/** The items at these places, in this order. */
export class Picked<T> implements Sequence<T> {
  readonly #find: (place: number) => T | undefined;
  readonly #places: Uint32Array;

  constructor(find: (place: number) => T | undefined, places: Uint32Array) {
    this.#find = find;
    this.#places = places;
  }

  get length(): number {
    return this.#places.length;
  }

  at(place: number): T | undefined {
    const there = this.#places[place];
    return there === undefined ? undefined : this.#find(there);
  }

  *[Symbol.iterator](): Generator<T> {
    for (const place of this.#places) yield this.#find(place) as T;
  }

  /** The first items, up to a number. */
  first(count: number): Picked<T> {
    return new Picked(this.#find, this.#places.subarray(0, count));
  }
}

// A fair order: each group has one turn before any group has a second one.

/**
 * The items by turns of their groups. Within a group, and between the groups of one turn, the order stays. `had`: the turns
 * that groups have had before.
 */
export function inTurns<T>(
  items: readonly T[],
  groupOf: (item: T) => string,
  had: ReadonlyMap<string, number> = new Map(),
): readonly T[] {
  const turns = new Map(had);
  const numbered = items.map((item) => {
    const group = groupOf(item);
    const turn = turns.get(group) ?? 0;
    turns.set(group, turn + 1);
    return { item, turn };
  });
  return numbered.toSorted((a, b) => a.turn - b.turn).map(({ item }) => item);
}
