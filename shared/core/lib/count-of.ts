/** Counts what a list has, without a list of it: there are 150,000 pods, and a decision asks often. */
export function countOf<T>(items: readonly T[], isOne: (item: T) => boolean): number {
  return items.reduce((count, item) => (isOne(item) ? count + 1 : count), 0);
}
