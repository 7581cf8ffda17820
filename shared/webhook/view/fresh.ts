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
/** After this long, a value that may still serve is better than a request that times out. */
const PATIENCE_MS = 4_000;
/** A caller that waited for this long in vain is the last one for some seconds, where a value may still serve. */
const SLOW_MS = 1_000;
const TROUBLE_MS = 5_000;

interface Moment {
  readonly wall: number;
  readonly steady: number;
}

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
  /** since when callers do not wait; undefined: they do */
  let troubledSince: Moment | undefined;
  /** why the value could not be read the last time */
  let because: unknown;

  const moment = (): Moment => ({ wall: now(), steady: steady() });
  /** A clock that was set back says nothing about an age. */
  const ageOf = (moment: Moment): number => {
    const byWall = now() - moment.wall;
    return byWall < 0 ? Number.POSITIVE_INFINITY : Math.max(byWall, steady() - moment.steady);
  };
  const holds = (one: Last<T> | undefined): one is Last<T> => one !== undefined && ageOf(one.begun) < one.holdsForMs;

  const begin = (): Promise<T> => {
    const begun = moment();
    const ended = () => {
      inFlight = undefined;
    };
    inFlight = read();
    inFlight.then((value) => {
      last = { begun, holdsForMs: holdsForMs(value), fresh: { value } };
      troubledSince = undefined;
      ended();
    }, ended);
    return inFlight;
  };

  /** Shared by all who cannot use the reading in flight, unless what it gives holds for them too. */
  const beginNext = (): Promise<T> => {
    if (inFlight === undefined) return begin();
    next ??= inFlight.then(noop, noop).then(() => {
      next = undefined;
      return holds(last) ? last.fresh.value : begin();
    });
    return next;
  };

  /** By whichever clock says more: one that was set back must not keep an old value for an hour. */
  const isTooOld = ({ wall, steady: began }: Moment) => !(Math.max(now() - wall, steady() - began) <= STALE_MS);

  /** One caller waits; when that takes long and is in vain, others get the last value, and ask in the background. */
  const readOr = async (value: T): Promise<Fresh<T>> => {
    const begun = moment();
    troubledSince &&= begun;
    const reading = beginNext();
    try {
      return { value: await within(PATIENCE_MS, () => reading) };
    } catch (staleBecause) {
      because = staleBecause;
      if (ageOf(begun) >= SLOW_MS) troubledSince = moment();
      return { value, staleBecause };
    }
  };

  const readAgain = async (): Promise<Fresh<T>> => {
    if (last === undefined || isTooOld(last.begun)) return { value: await beginNext() };
    const { value } = last.fresh;
    if (troubledSince === undefined || ageOf(troubledSince) >= TROUBLE_MS) return readOr(value);
    if (inFlight === undefined) begin().catch(noop);
    return { value, staleBecause: because };
  };

  return () => {
    if (!holds(last)) return readAgain();
    // While many ask, nobody has to wait when the time is over.
    if (ageOf(last.begun) > last.holdsForMs / 2 && inFlight === undefined) begin().catch(noop);
    return last.fresh;
  };
}

function noop(): void {}
