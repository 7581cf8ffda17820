/** What strangers can bring about is said in the log at most every ten seconds, so that nobody fills it from outside. */

const EVERY_MS = 10_000;

/** Calls `say` at once, then at most every ten seconds, with how many times it would have been called since. */
export function nowAndThen<T>(say: (count: number, last: T) => void): (value: T) => void {
  let count = 0;
  let saidAt = Number.NEGATIVE_INFINITY;
  return (value) => {
    count++;
    if (performance.now() - saidAt < EVERY_MS) return;
    saidAt = performance.now();
    const before = count;
    count = 0;
    say(before, value);
  };
}
