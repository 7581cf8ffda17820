/** Measures small functions side by side: alternating rounds, medians, and how time grows with size. */

export interface Subject {
  readonly name: string;
  readonly run: () => unknown;
  /** number of calls a round; enough for some milliseconds */
  readonly calls: number;
}

export interface Measured {
  readonly name: string;
  /** microseconds of a call, median of all rounds */
  readonly microseconds: number;
  /** microseconds of a call in the least disturbed round; a limit can use this value on a busy machine */
  readonly best: number;
  /** bytes that a call allocates; undefined without --expose-gc */
  readonly bytes?: number;
}

/** The results are used, so that the compiler cannot remove a call. */
function repeat({ name, run, calls }: Subject): void {
  for (let call = 0; call < calls; call++) {
    if (run() === undefined) throw new Error(`${name} gave nothing`);
  }
}

function timeRound(subject: Subject): number {
  const begin = performance.now();
  repeat(subject);
  return ((performance.now() - begin) * 1000) / subject.calls;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Compares the heap before and after a number of calls that fits into the young generation. */
function bytesPerCall(subject: Subject): number | undefined {
  const { gc } = globalThis;
  if (gc === undefined) return undefined;
  const rounds = Array.from({ length: 5 }, () => {
    gc();
    const before = process.memoryUsage().heapUsed;
    repeat(subject);
    return (process.memoryUsage().heapUsed - before) / subject.calls;
  });
  return Math.round(median(rounds));
}

/** Runs a round of each subject in turn, so that a busy moment of the machine affects all of them. */
export function measure(subjects: readonly Subject[], roundCount: number): readonly Measured[] {
  const times = subjects.map((): number[] => []);
  for (const subject of subjects) timeRound(subject);
  for (let round = 0; round < roundCount; round++) {
    for (const [index, subject] of subjects.entries()) times[index]?.push(timeRound(subject));
  }
  return subjects.map((subject, index) => {
    const bytes = bytesPerCall(subject);
    const rounds = times[index] ?? [];
    const timed = { microseconds: median(rounds), best: Math.min(...rounds) };
    return { name: subject.name, ...timed, ...(bytes === undefined ? {} : { bytes }) };
  });
}

/** Returns the k of time = c · sizeᵏ that fits best (least squares over logarithms). */
export function growthExponent(points: readonly (readonly [size: number, time: number])[]): number {
  const logs = points.map(([size, time]) => [Math.log(size), Math.log(time)] as const);
  const mean = (axis: 0 | 1) => logs.reduce((sum, point) => sum + point[axis], 0) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const covariance = logs.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0);
  return covariance / logs.reduce((sum, [a]) => sum + (a - x) ** 2, 0);
}

/** Returns the slope of the best line by least squares. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (axis: 0 | 1) => points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const covariance = points.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0);
  return covariance / points.reduce((sum, [a]) => sum + (a - x) ** 2, 0);
}
