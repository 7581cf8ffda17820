/**
 * The order of equal elements, exactly as Go's sort.Slice leaves it: pattern-defeating quicksort, which is unstable
 * above 12 elements. Source: the algorithm of Orson Peters in Go 1.19 and later (package sort).
 */

/** Positions, not elements, are compared and swapped, as in Go's sort.Interface. */
interface Positions {
  readonly isLess: (i: number, j: number) => boolean;
  readonly swap: (i: number, j: number) => void;
}

interface Pivot {
  readonly at: number;
  readonly pattern: "increasing" | "decreasing" | "unknown";
}

const MAX_INSERTION = 12;
const SHORTEST_NINTHER = 50;
const SHORTEST_SHIFTING = 50;
const MAX_SWAPS = 12;
const MAX_STEPS = 5;
const UINT64 = 64;

/** An array, or numbers in a typed one. */
interface Sortable<T> {
  readonly length: number;
  [place: number]: T;
}

/** Sorts `items` in place, and returns them; `isLess` must be a strict weak order. */
export function pdqsort<T, L extends Sortable<T>>(items: L & Sortable<T>, isLess: (a: T, b: T) => boolean): L {
  const positions: Positions = {
    isLess: (i, j) => isLess(items[i] as T, items[j] as T),
    swap: (i, j) => {
      const item = items[i] as T;
      items[i] = items[j] as T;
      items[j] = item;
    },
  };
  sortRange(positions, 0, items.length, bitLength(items.length));
  return items;
}

/** The remaining range [a, b), and how balanced its last partition was. */
interface Range {
  readonly a: number;
  readonly b: number;
  /** number of imbalanced partitions after which heap sort continues */
  readonly limit: number;
  readonly wasBalanced: boolean;
  readonly wasPartitioned: boolean;
}

function sortRange(positions: Positions, a: number, b: number, limit: number): void {
  let range: Range | undefined = { a, b, limit, wasBalanced: true, wasPartitioned: true };
  while (range && range.b - range.a > MAX_INSERTION) range = narrow(positions, range);
  if (range) insertionSort(positions, range.a, range.b);
}

/** Partitions once, sorts the smaller side, and returns the larger one; undefined: all is sorted. */
function narrow(positions: Positions, range: Range): Range | undefined {
  const { a, b, wasBalanced, wasPartitioned } = range;
  if (range.limit === 0) {
    heapSort(positions, a, b);
    return undefined;
  }
  if (!wasBalanced) breakPatterns(positions, a, b);
  const limit = wasBalanced ? range.limit : range.limit - 1;
  const pivot = preparePivot(positions, a, b);
  const looksSorted = wasBalanced && wasPartitioned && pivot.pattern === "increasing";
  if (looksSorted && partialInsertionSort(positions, a, b)) return undefined;
  if (a > 0 && !positions.isLess(a - 1, pivot.at)) {
    return { ...range, limit, a: partitionEqual(positions, a, b, pivot.at) };
  }
  return splitRange(positions, { ...range, limit }, pivot.at);
}

function splitRange(positions: Positions, { a, b, limit }: Range, pivot: number): Range {
  const { middle, wasAlready: wasPartitioned } = partition(positions, a, b, pivot);
  const wasBalanced = Math.min(middle - a, b - middle) >= Math.floor((b - a) / 8);
  if (middle - a < b - middle) {
    sortRange(positions, a, middle, limit);
    return { a: middle + 1, b, limit, wasBalanced, wasPartitioned };
  }
  sortRange(positions, middle + 1, b, limit);
  return { a, b: middle, limit, wasBalanced, wasPartitioned };
}

function insertionSort({ isLess, swap }: Positions, a: number, b: number): void {
  for (let i = a + 1; i < b; i++) {
    for (let j = i; j > a && isLess(j, j - 1); j--) swap(j, j - 1);
  }
}

function siftDown({ isLess, swap }: Positions, low: number, high: number, first: number): void {
  let root = low;
  for (let child = 2 * root + 1; child < high; child = 2 * root + 1) {
    if (child + 1 < high && isLess(first + child, first + child + 1)) child++;
    if (!isLess(first + root, first + child)) return;
    swap(first + root, first + child);
    root = child;
  }
}

function heapSort(positions: Positions, a: number, b: number): void {
  const length = b - a;
  for (let i = Math.floor((length - 1) / 2); i >= 0; i--) siftDown(positions, i, length, a);
  for (let i = length - 1; i >= 0; i--) {
    positions.swap(a, a + i);
    siftDown(positions, 0, i, a);
  }
}

/** Moves the pivot to its place, smaller elements before it, the others after it. */
function partition({ isLess, swap }: Positions, a: number, b: number, pivot: number) {
  swap(a, pivot);
  let [i, j] = [a + 1, b - 1];
  let swaps = 0;
  for (;;) {
    while (i <= j && isLess(i, a)) i++;
    while (i <= j && !isLess(j, a)) j--;
    if (i > j) break;
    swap(i, j);
    swaps++;
    i++;
    j--;
  }
  swap(j, a);
  return { middle: j, wasAlready: swaps === 0 };
}

/** Puts elements equal to the pivot first, greater ones after; returns the start of the greater ones. */
function partitionEqual({ isLess, swap }: Positions, a: number, b: number, pivot: number): number {
  swap(a, pivot);
  let [i, j] = [a + 1, b - 1];
  for (;;) {
    while (i <= j && !isLess(a, i)) i++;
    while (i <= j && isLess(a, j)) j--;
    if (i > j) return i;
    swap(i, j);
    i++;
    j--;
  }
}

/** Repairs a few misplaced elements; true if all is sorted afterwards. */
function partialInsertionSort(positions: Positions, a: number, b: number): boolean {
  const { isLess, swap } = positions;
  let i = a + 1;
  for (let step = 0; step < MAX_STEPS; step++) {
    while (i < b && !isLess(i, i - 1)) i++;
    if (i === b) return true;
    if (b - a < SHORTEST_SHIFTING) return false;
    swap(i, i - 1);
    shiftAround(positions, i, a, b);
  }
  return false;
}

/** Moves the smaller one of i-1 and i to the left, the greater one to the right. */
function shiftAround({ isLess, swap }: Positions, i: number, a: number, b: number): void {
  if (i - a >= 2) for (let j = i - 1; j >= 1 && isLess(j, j - 1); j--) swap(j, j - 1);
  if (b - i >= 2) for (let j = i + 1; j < b && isLess(j, j - 1); j++) swap(j, j - 1);
}

/** Scatters some elements around the middle, by a generator whose seed is the length: the same in every run. */
function breakPatterns({ swap }: Positions, a: number, b: number): void {
  const length = b - a;
  const mask = (1n << BigInt(bitLength(length))) - 1n;
  const first = a + Math.floor(length / 4) * 2 - 1;
  let random = BigInt(length);
  for (let i = 0; i < 3; i++) {
    random = BigInt.asUintN(UINT64, random ^ (random << 13n));
    random ^= random >> 7n;
    random = BigInt.asUintN(UINT64, random ^ (random << 17n));
    const other = Number(random & mask);
    swap(first + i, a + (other >= length ? other - length : other));
  }
}

/** Chooses the pivot. A range that looks decreasing is reversed first. */
function preparePivot(positions: Positions, a: number, b: number): Pivot {
  const pivot = choosePivot(positions, a, b);
  if (pivot.pattern !== "decreasing") return pivot;
  for (let [i, j] = [a, b - 1]; i < j; i++, j--) positions.swap(i, j);
  return { at: b - 1 - (pivot.at - a), pattern: "increasing" };
}

function choosePivot({ isLess }: Positions, a: number, b: number): Pivot {
  let swaps = 0;
  const order = (i: number, j: number): [number, number] => {
    if (!isLess(j, i)) return [i, j];
    swaps++;
    return [j, i];
  };
  const median = (i: number, j: number, k: number): number => {
    const [low, high] = order(i, j);
    const [middle] = order(high, k);
    return order(low, middle)[1];
  };
  const quarter = Math.floor((b - a) / 4);
  const candidates = [a + quarter, a + quarter * 2, a + quarter * 3] as const;
  const [i, j, k] = b - a >= SHORTEST_NINTHER ? candidates.map((at) => median(at - 1, at, at + 1)) : candidates;
  const at = median(i as number, j as number, k as number);
  if (swaps === 0) return { at, pattern: "increasing" };
  return { at, pattern: swaps === MAX_SWAPS ? "decreasing" : "unknown" };
}

/** Go's bits.Len: 0 for 0, 1 for 1, 4 for 8. */
function bitLength(n: number): number {
  return n === 0 ? 0 : Math.floor(Math.log2(n)) + 1;
}
