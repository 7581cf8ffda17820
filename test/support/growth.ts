/** How the work of a function grows with its input, whatever the machine's speed. */

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
 * True when sixteen times the input costs less than sixty-four times the computing time. What is linear costs sixteen
 * times as much, what is quadratic 256 times. A millisecond is as good as nothing.
 */
export function growsLinearly<T>(input: (size: number) => T, work: (input: T) => unknown, small = SMALL): boolean {
  const [few, many] = [input(small), input(small * TIMES)];
  const limit =
    64 *
    Math.max(
      leastMs(() => work(few), ATTEMPTS),
      0.25,
    );
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) if (leastMs(() => work(many), 1) < limit) return true;
  return false;
}
