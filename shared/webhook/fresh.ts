/** How old a value read from the cluster may be, and when it is read again: one read in flight at most, shared. */
import { within } from "./deadline.ts";

export interface FreshOptions<T> {
  readonly read: () => Promise<T>;
  /** A value whose reading began longer ago than this is read again first; 0: always. */
  readonly freshnessMs: number;
  /** epoch milliseconds */
  readonly now: () => number;
}

export interface Fresh<T> {
  readonly value: T;
  /** Set when the value is older than it may be, because it could not be read again: why. */
  readonly staleBecause?: unknown;
}

/** For how long the last value serves while it cannot be read again. */
const STALE_MS = 5 * 60_000;
/** After this long, a value that may still serve is better than a request that times out. */
const PATIENCE_MS = 4_000;

interface Reading<T> {
  readonly begun: number;
  readonly value: Promise<T>;
}

/** At once where the last value may still be used, which is what most requests find. */
export type Reader<T> = () => Fresh<T> | Promise<Fresh<T>>;

/**
 * A function that gives the value, read again when need be. Rejects as `read` does when no value of the last five
 * minutes is there.
 */
export function fresh<T>({ read, freshnessMs, now }: FreshOptions<T>): Reader<T> {
  let last: { readonly begun: number; readonly fresh: Fresh<T> } | undefined;
  let inFlight: Reading<T> | undefined;
  let next: Promise<T> | undefined;

  // A clock that was set back makes an age negative: not fresh.
  const isFresh = (begun: number) => now() - begun >= 0 && now() - begun < freshnessMs;

  const begin = (): Promise<T> => {
    const reading: Reading<T> = { begun: now(), value: read() };
    inFlight = reading;
    const ended = () => {
      inFlight = undefined;
    };
    reading.value.then((value) => {
      last = { begun: reading.begun, fresh: { value } };
      ended();
    }, ended);
    return reading.value;
  };

  /** The reading after the one in flight, shared by all who cannot use that one. */
  const beginNext = (): Promise<T> => {
    if (inFlight === undefined) return begin();
    next ??= inFlight.value.then(noop, noop).then(() => {
      next = undefined;
      return begin();
    });
    return next;
  };

  const readAgain = async (): Promise<Fresh<T>> => {
    const reading = inFlight && isFresh(inFlight.begun) ? inFlight.value : beginNext();
    if (last === undefined || now() - last.begun > STALE_MS) return { value: await reading };
    return orStale(reading, last.fresh.value);
  };

  return () => (last && isFresh(last.begun) ? last.fresh : readAgain());
}

async function orStale<T>(reading: Promise<T>, stale: T): Promise<Fresh<T>> {
  try {
    return { value: await within(PATIENCE_MS, () => reading) };
  } catch (staleBecause) {
    return { value: stale, staleBecause };
  }
}

function noop(): void {}
