/** A cluster that counts calls, waits as the API server asks, and gives no answers after the pass has ended. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { isKubeError, KubeError } from "../../kube/error.ts";
import type { Cluster, Resource, WatchOptions } from "../../kube/port.ts";
import type { Clock } from "./clock.ts";

/** Milliseconds of extra time for the last write to the Lease, and for the reason of a failure. */
export const LATE_MS = 500;

/** Numbers of calls by method and resource, such as "PATCH pods". */
export type Calls = Record<string, number>;

export interface Metering {
  readonly clock: Clock;
  /** time on `clock` at which the pass ends */
  readonly endsAtMs: number;
  /** aborts when the pass ends, so that all waits end */
  readonly over: AbortSignal;
  /** number of calls so far */
  readonly calls: Calls;
  /** the waits of the API server, if several clients share them; absent: this one has its own */
  readonly retryAfter?: RetryAfter;
}

/**
 * Counts and limits calls. A call without an answer at `endsAtMs` fails with reason DeadlineExceeded; as after any
 * timeout, its outcome is unknown.
 */
export function meteredCluster(
  cluster: Cluster,
  { clock, endsAtMs, over, calls, retryAfter = new RetryAfter(clock, over) }: Metering,
): Cluster {
  const count = (verb: string, { plural }: Resource, subresource?: string) => {
    const call = `${verb} ${plural || "discovery"}${subresource ? `/${subresource}` : ""}`;
    calls[call] = (calls[call] ?? 0) + 1;
    return call;
  };
  // One timer for all calls: there may be hundreds of thousands.
  const open = new Set<() => void>();
  const watch = async () => {
    // Once, unless the clock is set back meanwhile.
    for (let leftMs = endsAtMs - clock.now(); leftMs > 0; leftMs = endsAtMs - clock.now()) {
      await clock.sleep(leftMs, over);
      if (over.aborted) return;
      for (const fail of open) fail();
    }
  };
  void watch();
  const inTime = async <T>(call: string, { namespace = "", name = "" }: Target, work: () => Promise<T>) => {
    if (endsAtMs <= clock.now()) throw deadlineExceeded(call, true);
    const late = Promise.withResolvers<never>();
    const fail = () => late.reject(deadlineExceeded(call, false));
    open.add(fail);
    // A timer may fire a little early and wake a waiter.
    const isOver = () => over.aborted || endsAtMs <= clock.now();
    const key = `${call} ${namespace}/${name}`;
    try {
      if (retryAfter.isHeldBack(key)) await Promise.race([retryAfter.wait(key), late.promise]);
      if (isOver()) throw deadlineExceeded(call, true);
      const sent = work().catch((error: unknown) => retryAfter.note(key, error));
      return await Promise.race([sent, late.promise]);
    } finally {
      open.delete(fail);
    }
  };
  return {
    serverTimeMs: cluster.serverTimeMs,
    get: (resource, key) => inTime(count("GET", resource), key, () => cluster.get(resource, key)),
    list: (resource, options = {}) => inTime(count("LIST", resource), options, () => cluster.list(resource, options)),
    create: (resource, object, options) =>
      inTime(count("CREATE", resource, options?.subresource), object.metadata ?? {}, () =>
        cluster.create(resource, object, options),
      ),
    patch: (resource, key, patch, options) =>
      inTime(count("PATCH", resource, options?.subresource), key, () => cluster.patch(resource, key, patch, options)),
    delete: (resource, key, options) =>
      inTime(count("DELETE", resource), key, () => cluster.delete(resource, key, options)),
    watch: <T extends KubernetesObject>(resource: Resource, options: WatchOptions) => {
      const call = count("WATCH", resource);
      return retryAfter.heedStream(`${call} ${options.namespace ?? ""}/`, () => cluster.watch<T>(resource, options));
    },
  };
}

interface Target {
  readonly namespace?: string;
  readonly name?: string;
}

export function deadlineExceeded(call: string, isOutcomeKnown: boolean): KubeError {
  return new KubeError(`${call}: the pass is over, its time is used up`, {
    code: 0,
    reason: "DeadlineExceeded",
    isOutcomeKnown,
  });
}

/** Limit in milliseconds of a wait that an API server may ask for. */
const MOST_MS = 5_000;

/** Delays calls by the wait that the API server last asked for, from any caller. */
export class RetryAfter {
  readonly #clock: Clock;
  readonly #over: AbortSignal;
  /** earliest time of the next call, on the clock, by call and target */
  readonly #notBefore = new Map<string, number>();

  /** `over` aborts when all waits must end */
  constructor(clock: Clock, over: AbortSignal) {
    this.#clock = clock;
    this.#over = over;
  }

  isHeldBack(key: string): boolean {
    return this.#notBefore.has(key);
  }

  async *heedStream<T>(key: string, open: () => AsyncIterable<T>): AsyncGenerator<T> {
    if (this.isHeldBack(key)) await this.wait(key);
    try {
      yield* open();
    } catch (error) {
      this.note(key, error);
    }
  }

  async wait(key: string): Promise<void> {
    // Another of several running calls may extend the wait meanwhile.
    while (this.#leftMs(key) > 0 && !this.#over.aborted) await this.#clock.sleep(this.#leftMs(key), this.#over);
    this.#notBefore.delete(key);
  }

  #leftMs(key: string): number {
    return (this.#notBefore.get(key) ?? 0) - this.#clock.now();
  }

  /** Obeys the wait in the API server's error. */
  note(key: string, error: unknown): never {
    const { retryAfterSeconds = 0 } = isKubeError(error) ? error : {};
    if (retryAfterSeconds > 0)
      this.#notBefore.set(key, this.#clock.now() + Math.min(MOST_MS, 1_000 * retryAfterSeconds));
    throw error;
  }
}
