/** A cluster whose calls are counted, wait as the API server asks, and are not answered any more once the pass is over. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { KubeError } from "../../kube/error.ts";
import type { Cluster, Resource, WatchOptions } from "../../kube/port.ts";
import type { Clock } from "./clock.ts";
import { RetryAfter } from "./retry-after.ts";

/** "PATCH pods" → how often */
export type Calls = Record<string, number>;

export interface Metering {
  readonly clock: Clock;
  /** on `clock` */
  readonly endsAtMs: number;
  /** aborts when the pass is over: nothing is waited for any more */
  readonly over: AbortSignal;
  /** counted here */
  readonly calls: Calls;
  /** what the API server asked to wait, where several clusters heed it together; absent: this one alone */
  readonly retryAfter?: RetryAfter;
}

/**
 * A call that is not answered at `endsAtMs` fails with reason DeadlineExceeded; whether it was carried out is not known
 * then, as ever after a timeout.
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
  const inTime = <T>(call: string, { namespace = "", name = "" }: Target, work: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      if (endsAtMs <= clock.now()) return reject(deadlineExceeded(call, true));
      const fail = () => reject(deadlineExceeded(call, false));
      open.add(fail);
      // A timer may fire a little early, and wake a waiter.
      const isOver = () => over.aborted || endsAtMs <= clock.now();
      const send = () => (isOver() ? Promise.reject(deadlineExceeded(call, true)) : work());
      retryAfter.heed(`${call} ${namespace}/${name}`, send).then(
        (value) => {
          open.delete(fail);
          resolve(value);
        },
        (error: unknown) => {
          open.delete(fail);
          reject(error);
        },
      );
    });
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
