/** Time and randomness as arguments, so that a simulation can drive a pass. */
import { setTimeout as wait } from "node:timers/promises";
import { secondText } from "../../time-text.ts";

export interface Clock {
  /** milliseconds since some beginning, never going back: for how long something takes, and until when it may */
  readonly now: () => number;
  /** milliseconds since the epoch by this machine's clock, for written times. It may jump. */
  readonly epochMs: () => number;
  /** Resolves after `ms`, or at once when `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** in [0, 1) */
  readonly random: () => number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  epochMs: () => Date.now(),
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}).catch(() => undefined),
  random: Math.random,
};

/** RFC3339, whole seconds, UTC. */
export function timestamp(clock: Clock): string {
  return secondText(clock.epochMs());
}

/** The time limit of some work. */
export interface Limits {
  /** on the pass's clock */
  readonly endsAtMs: number;
  readonly signal?: AbortSignal;
}

// The place for problems of a pass that belong to no object's report.

/** The same problem is noted once. */
export function note({ problems }: { readonly problems: string[] }, problem: string): void {
  if (!problems.includes(problem)) problems.push(problem);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
