/** How old a value read from the cluster may be, and when it is read again: one read in flight at most, shared. */

import type { Admission } from "../../core/admission/admission.ts";
import { isKubeError } from "../../kube/error.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Log } from "../../log.ts";
import { DeadlineError, within } from "../server/http.ts";
import { PATIENCE_MS, SLOW_MS } from "./announcements.ts";
import { addDoubts, beginTrouble, doubtOf, endTrouble, type Trouble } from "./trouble.ts";

export interface FreshOptions<T> {
  readonly read: () => Promise<T>;
  /**
   * milliseconds since the start of a reading for which its value is certainly current; 0: only for callers who asked
   * before its start
   */
  readonly holdsForMs: (value: T) => number;
  /** the breaker for the kind of objects that is read */
  readonly breaker: Breaker;
}

/** Two clocks, because one may be set back and the other may stop while the process is frozen. */
export interface Clocks {
  /** epoch milliseconds */
  readonly now: () => number;
  /** milliseconds that never go back; absent: the process's own clock */
  readonly steady?: () => number;
}

export interface Fresh<T> {
  readonly value: T;
  /** The reason why the value is older than allowed: it could not be read again. */
  readonly staleBecause?: unknown;
}

/** Milliseconds for which the last value is used while it cannot be read again. */
const STALE_MS = 5 * 60_000;
interface Moment {
  readonly wall: number;
  readonly steady: number;
}

interface Last<T> {
  readonly begun: Moment;
  readonly holdsForMs: number;
  readonly fresh: Fresh<T>;
}

interface BreakerOptions extends Clocks {
  /** log of trouble; absent: trouble is not logged */
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
}

/**
 * The state of an API server in trouble, shared by the readers of one kind of objects. Only events during a caller's
 * wait count: a background reading may take a minute because the process is frozen.
 */
export class Breaker {
  readonly log: Pick<Log, "info" | "warn"> | undefined;
  /** the kind of objects, for the log; absent: more than one */
  readonly kind: string | undefined;
  /** present trouble; absent: the last reading was in time */
  trouble: Trouble | undefined;
  readonly #clocks: Required<Clocks>;

  constructor({ now, steady = () => performance.now(), log }: BreakerOptions, kind?: string) {
    this.#clocks = { now, steady };
    this.log = log;
    this.kind = kind;
  }

  /** True while callers do not wait for a reading. A caller without a known value waits, unless there was no answer at all. */
  isResting(isKnown: boolean): boolean {
    const { trouble } = this;
    return trouble !== undefined && (isKnown || trouble.isSilent) && this.ageOf(trouble.seen) < trouble.restMs;
  }

  /** Waits for a reading, which shows whether the API server is in trouble. */
  async wait<T>(isKnown: boolean, reading: () => Promise<T>): Promise<T> {
    const begun = this.moment();
    const patienceMs = isKnown ? SLOW_MS : PATIENCE_MS;
    const { trouble } = this;
    // This caller tries again, and the others do not wait. Old trouble has no effect.
    if (trouble) {
      const isRecent = this.ageOf(trouble.seen) < 2 * trouble.restMs;
      this.trouble = { ...trouble, ...(isRecent ? { seen: begun } : { restMs: 0, isSilent: false }) };
    }
    try {
      return await inSlices(patienceMs, reading());
    } catch (because) {
      throw beginTrouble(this, because, this.ageOf(begun), because instanceof DeadlineError ? patienceMs : 0);
    }
  }

  moment(): Moment {
    return { wall: this.#clocks.now(), steady: this.#clocks.steady() };
  }

  /** The age of a moment. A clock that was set back gives no age. */
  ageOf({ wall, steady }: Moment): number {
    const byWall = this.#clocks.now() - wall;
    return byWall < 0 ? Number.POSITIVE_INFINITY : Math.max(byWall, this.#clocks.steady() - steady);
  }

  /** The larger age counts: a clock that was set back must not keep an old value for an hour. */
  isTooOld({ wall, steady }: Moment): boolean {
    return !(Math.max(this.#clocks.now() - wall, this.#clocks.steady() - steady) <= STALE_MS);
  }
}

/** A cluster whose calls wait like a caller without a known value. After silence they fail at once for some seconds. */
export function patientConnect(connect: () => Promise<Cluster>, breaker: Breaker): () => Promise<Cluster> {
  const patiently = async <T>(call: () => Promise<T>): Promise<T> => {
    if (breaker.isResting(false)) throw breaker.trouble?.because;
    const begun = breaker.moment();
    // A refusal is an answer about one object. It says nothing about the API server, or about other calls.
    const answer = await breaker.wait(false, () =>
      call().then(
        (value) => () => value,
        (error: unknown) => {
          if (!isKubeError(error) || error.code < 400 || error.code >= 500) throw error;
          return () => {
            throw error;
          };
        },
      ),
    );
    endTrouble(breaker, breaker.ageOf(begun));
    return answer();
  };
  return async () => {
    const cluster = await patiently(connect);
    return {
      ...cluster,
      get: (...asked) => patiently(() => cluster.get(...asked)),
      list: (...asked) => patiently(() => cluster.list(...asked)),
      patch: (...asked) => patiently(() => cluster.patch(...asked)),
    };
  };
}

/** Returns the value at once if the last one may still be used, which is the usual case. */
export type Reader<T> = () => Fresh<T> | Promise<Fresh<T>>;

/**
 * Returns a function that gives the value and reads it again if needed. It rejects as `read` does if there is no value
 * of the last five minutes.
 */
export function fresh<T>({ read, holdsForMs, breaker }: FreshOptions<T>): Reader<T> {
  let last: Last<T> | undefined;
  let inFlight: Promise<T> | undefined;
  let next: Promise<T> | undefined;

  const holds = (one: Last<T> | undefined): one is Last<T> =>
    one !== undefined && breaker.ageOf(one.begun) < one.holdsForMs;

  const begin = (): Promise<T> => {
    const begun = breaker.moment();
    const ended = () => {
      inFlight = undefined;
    };
    inFlight = read();
    inFlight.then((value) => {
      last = { begun, holdsForMs: holdsForMs(value), fresh: { value } };
      if (breaker.trouble !== undefined) endTrouble(breaker, breaker.ageOf(begun));
      ended();
    }, ended);
    return inFlight;
  };

  /** The next reading, for all callers who cannot use the running one, unless its result is valid for them too. */
  const beginNext = (): Promise<T> => {
    if (inFlight === undefined) return begin();
    next ??= inFlight.then(noop, noop).then(() => {
      next = undefined;
      return holds(last) ? last.fresh.value : begin();
    });
    return next;
  };

  const usable = () => (last === undefined || breaker.isTooOld(last.begun) ? undefined : last.fresh);

  const inTrouble = (known: Fresh<T> | undefined, because: unknown): Fresh<T> => {
    if (known === undefined) throw because;
    return { value: known.value, staleBecause: because };
  };

  const readAgain = async (): Promise<Fresh<T>> => {
    const known = usable();
    try {
      return { value: await breaker.wait(known !== undefined, beginNext) };
    } catch (because) {
      // A reading from before this caller may have ended by now.
      return inTrouble(usable() ?? known, because);
    }
  };

  const rest = async (): Promise<Fresh<T>> => {
    if (inFlight === undefined) begin().catch(noop);
    return inTrouble(usable(), breaker.trouble?.because);
  };

  return () => {
    if (!holds(last)) return breaker.isResting(usable() !== undefined) ? rest() : readAgain();
    // With many callers, the value is renewed early so that nobody waits.
    if (breaker.ageOf(last.begun) > last.holdsForMs / 2 && inFlight === undefined) begin().catch(noop);
    return last.fresh;
  };
}

/** A slice takes longer in a busy process, which reads an arrived answer late: that is not the API server's fault. */
const SLICE_MS = 250;

async function inSlices<T>(patienceMs: number, reading: Promise<T>): Promise<T> {
  for (let leftMs = patienceMs; ; leftMs -= SLICE_MS) {
    try {
      return await within(SLICE_MS, () => reading);
    } catch (error) {
      if (!(error instanceof DeadlineError) || leftMs <= SLICE_MS) throw error;
    }
  }
}

function noop(): void {}

// Tells the caller that the decision depends on an outdated state.

/** Collects the doubts about one request's answer. */
export class Staleness {
  readonly #doubts: string[] = [];

  /** Returns the value, and records a warning if it is outdated. */
  note<T>(what: string, { value, staleBecause }: Fresh<T>): T {
    if (staleBecause !== undefined) this.#doubts.push(doubtOf(what, staleBecause));
    return value;
  }

  /** Returns the same decision, with the warnings if it allows. */
  warn(admission: Admission): Admission {
    return this.#doubts.length === 0 ? admission : addDoubts(admission, this.#doubts);
  }
}
