/** Tests how a function's work grows with its input, on a machine of any speed. */

const SMALL = 2_000;
const TIMES = 16;
const ATTEMPTS = 5;

function leastMs(work: () => unknown, attempts: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attempts; attempt++) {
    const { user, system } = process.threadCpuUsage();
    const began = user + system;
    work();
    const used = process.threadCpuUsage();
    least = Math.min(least, (used.user + used.system - began) / 1000);
  }
  return least;
}

/**
 * True if work on sixteen times the input takes less than four times as long as sixteen times the work on the input.
 * Linear work takes as long, and quadratic work sixteen times as long; both leave as much garbage. Less than four
 * milliseconds prove nothing.
 */
export function growsLinearly<T>(input: (size: number) => T, work: (input: T) => unknown, small = SMALL): boolean {
  const [few, many] = [input(small), input(small * TIMES)];
  const again = () => {
    for (let time = 0; time < TIMES; time++) work(few);
  };
  const limit = 4 * Math.max(leastMs(again, ATTEMPTS), 4);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) if (leastMs(() => work(many), 1) < limit) return true;
  return false;
}
