/** How old a value read from the cluster may be, and when it is read again: one read in flight at most, shared. */
import { within } from "../server/http.ts";

export interface FreshOptions<T> {
  readonly read: () => Promise<T>;
  /**
   * For how long, from when its reading began, a value is what is there, so that nobody has to ask, in milliseconds;
   * 0: only for those who asked before its reading began.
   */
  readonly holdsForMs: (value: T) => number;
  readonly clocks: Clocks;
}

/** Both, since one may be set back and the other may stand still while the process is frozen. */
export interface Clocks {
  /** epoch milliseconds */
  readonly now: () => number;
  /** milliseconds that never go back; absent: those of this process */
  readonly steady?: () => number;
}

export interface Fresh<T> {
  readonly value: T;
  /** Set when the value is older than it may be, because it could not be read again: why. */
  readonly staleBecause?: unknown;
}

/** For how long the last value serves while it cannot be read again. */
const STALE_MS = 5 * 60_000;
/** So long a caller waits for a reading, where the last value may serve and where none does. */
const WAIT_MS = 1_000;
const FIRST_WAIT_MS = 4_000;
/** What takes so long is slow, and what is known serves at once from then on. */
const SLOW_MS = 900;
/** Then one caller waits again, unless a reading in the background has shown more. */
const TROUBLE_MS = 5_000;
/** Trouble of that long ago says nothing. */
const PAST_MS = 8_000;

/** By both clocks. */
type Moment = readonly [wall: number, steady: number];

interface Last<T> {
  readonly begun: Moment;
  readonly holdsForMs: number;
  readonly fresh: Fresh<T>;
}

/** At once where the last value may still be used, which is what most requests find. */
export type Reader<T> = () => Fresh<T> | Promise<Fresh<T>>;

/**
 * A function that gives the value, read again when need be. Rejects as `read` does when no value of the last five
 * minutes is there.
 */
export function fresh<T>({ read, holdsForMs, clocks }: FreshOptions<T>): Reader<T> {
  const { now, steady = () => performance.now() } = clocks;
  let last: Last<T> | undefined;
  let inFlight: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  /** when a caller last waited in vain, or a reading in that trouble was no better; undefined: callers wait */
  let troubledSince: Moment | undefined;
  /** why the value could not be read the last time */
  let because: unknown;

  const moment = (): Moment => [now(), steady()];
  /** A clock that was set back says nothing about an age. */
  const ageOf = ([wall, began]: Moment): number => {
    const byWall = now() - wall;
    return byWall < 0 ? Number.POSITIVE_INFINITY : Math.max(byWall, steady() - began);
  };
  const holds = (one: Last<T> | undefined): one is Last<T> => one !== undefined && ageOf(one.begun) < one.holdsForMs;

  const isTroubled = () => troubledSince && ageOf(troubledSince) < TROUBLE_MS;

  const begin = (): Promise<T> => {
    const begun = moment();
    // A process may be frozen while it reads, so what nobody waited for begins no trouble.
    const ended = (isSlow: boolean) => {
      inFlight = undefined;
      troubledSince = isTroubled() && isSlow ? moment() : undefined;
    };
    inFlight = read();
    inFlight.then(
      (value) => {
        last = { begun, holdsForMs: holdsForMs(value), fresh: { value } };
        ended(ageOf(begun) >= SLOW_MS);
      },
      (error: unknown) => {
        because = error;
        ended(true);
      },
    );
    return inFlight;
  };

  /** Shared by all who cannot use the reading in flight, unless what it gives holds for them too. */
  const beginNext = (): Promise<T> => {
    if (!inFlight) return begin();
    next ??= inFlight.then(noop, noop).then(() => {
      next = undefined;
      return holds(last) ? last.fresh.value : begin();
    });
    return next;
  };

  /** By whichever clock says more: one that was set back must not keep an old value for an hour. */
  const isTooOld = ([wall, began]: Moment) => !(Math.max(now() - wall, steady() - began) <= STALE_MS);

  const stale = (): Fresh<T> => {
    if (!last || isTooOld(last.begun)) throw because;
    return { ...last.fresh, staleBecause: because };
  };

  const waited = async (mostMs: number): Promise<Fresh<T>> => {
    const begun = moment();
    // One caller finds out whether the trouble is over; after a while without callers all of them do.
    troubledSince = troubledSince && ageOf(troubledSince) < PAST_MS ? begun : undefined;
    try {
      return { value: await within(mostMs, beginNext) };
    } catch (error) {
      because = error;
      if (ageOf(begun) >= SLOW_MS) troubledSince = moment();
      return stale();
    }
  };

  const readAgain = async (): Promise<Fresh<T>> => {
    if (!isTroubled()) return waited(last && !isTooOld(last.begun) ? WAIT_MS : FIRST_WAIT_MS);
    if (!inFlight) begin().catch(noop);
    return stale();
  };

  return () => {
    if (!holds(last)) return readAgain();
    // While many ask, nobody has to wait when the time is over.
    if (ageOf(last.begun) > last.holdsForMs / 2 && !inFlight) begin().catch(noop);
    return last.fresh;
  };
}

function noop(): void {}
