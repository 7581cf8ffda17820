/** Time and randomness as arguments, so that a simulation can drive a pass. */
import { setTimeout as wait } from "node:timers/promises";
import { secondText } from "../../time-text.ts";

export interface Clock {
  /** milliseconds since any start, never going back: for durations and time limits */
  readonly now: () => number;
  /** milliseconds since the epoch by this machine's clock, for recorded times; it may jump */
  readonly epochMs: () => number;
  /** Resolves after `ms`, or at once when `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** a number in [0, 1) */
  readonly random: () => number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  epochMs: () => Date.now(),
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}).catch(() => undefined),
  random: Math.random,
};

/** The present time: RFC3339, whole seconds, UTC. */
export function timestamp(clock: Clock): string {
  return secondText(clock.epochMs());
}

/** The time limit of some work. */
export interface Limits {
  /** time at which the work must end, on the pass's clock */
  readonly endsAtMs: number;
  readonly signal?: AbortSignal;
}

// A list for problems of a pass that are in no object's report.

/** Records a problem. The same problem is recorded once. */
export function note({ problems }: { readonly problems: string[] }, problem: string): void {
  if (!problems.includes(problem)) problems.push(problem);
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
