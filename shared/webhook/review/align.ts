/** Tells which elements of two lists are equal, so that a patch can leave them in place. */

export type Pair = readonly [from: number, to: number];

/** Limit of comparisons: beyond it the patch grows, but not the time. */
const MAX_COMPARISONS = 1_000_000;

/**
 * The indexes of the longest list of identities that occur in both, in order; undefined when finding out would take
 * too long. What both begin and end with costs nothing.
 */
export function align(from: readonly string[], to: readonly string[]): readonly Pair[] | undefined {
  const shorter = Math.min(from.length, to.length);
  let head = 0;
  while (head < shorter && from[head] === to[head]) head++;
  let tail = 0;
  while (tail < shorter - head && from.at(-1 - tail) === to.at(-1 - tail)) tail++;

  const [middleFrom, middleTo] = [from.slice(head, from.length - tail), to.slice(head, to.length - tail)];
  if (middleFrom.length * middleTo.length > MAX_COMPARISONS) return undefined;
  return [
    ...run(head, 0, 0),
    ...longestCommon(middleFrom, middleTo).map(([a, b]): Pair => [a + head, b + head]),
    ...run(tail, from.length - tail, to.length - tail),
  ];
}

function run(length: number, from: number, to: number): readonly Pair[] {
  return Array.from({ length }, (_, offset): Pair => [from + offset, to + offset]);
}

function longestCommon(from: readonly string[], to: readonly string[]): readonly Pair[] {
  const lengthAt = commonLengths(from, to);
  const pairs: Pair[] = [];
  let [a, b] = [0, 0];
  while (a < from.length && b < to.length) {
    if (from[a] === to[b]) pairs.push([a++, b++]);
    else if (lengthAt(a + 1, b) >= lengthAt(a, b + 1)) a++;
    else b++;
  }
  return pairs;
}

/** For every two places: the number of common identities of the remaining lists. */
function commonLengths(from: readonly string[], to: readonly string[]): (a: number, b: number) => number {
  const width = to.length + 1;
  const lengths = new Uint32Array((from.length + 1) * width);
  const lengthAt = (a: number, b: number) => lengths[a * width + b] ?? 0;
  for (let a = from.length - 1; a >= 0; a--) {
    for (let b = to.length - 1; b >= 0; b--) {
      const skipped = Math.max(lengthAt(a + 1, b), lengthAt(a, b + 1));
      lengths[a * width + b] = from[a] === to[b] ? lengthAt(a + 1, b + 1) + 1 : skipped;
    }
  }
  return lengthAt;
}
