/** A cluster whose calls are counted, and that answers nothing any more once the pass is over. */
import { KubeError } from "../kube/error.ts";
import type { Cluster, Resource } from "../kube/port.ts";
import type { Clock } from "./clock.ts";

/** "PATCH pods" → how often */
export type Calls = Record<string, number>;

/** A reason of its own, as the default is an exception, made anew for each call. */
const OVER = "answered";

/**
 * A call that is not answered at `endsAtMs` (on `clock`) fails with reason DeadlineExceeded; whether it was carried out
 * is not known then, as ever after a timeout.
 */
export function meteredCluster(cluster: Cluster, clock: Clock, endsAtMs: number, calls: Calls): Cluster {
  const count = (verb: string, { plural }: Resource, subresource?: string) => {
    const call = `${verb} ${plural || "discovery"}${subresource ? `/${subresource}` : ""}`;
    calls[call] = (calls[call] ?? 0) + 1;
    return call;
  };
  const inTime = async <T>(call: string, work: () => Promise<T>): Promise<T> => {
    const leftMs = endsAtMs - clock.now();
    if (leftMs <= 0) throw deadlineExceeded(call, true);
    const done = new AbortController();
    const late = clock.sleep(leftMs, done.signal).then(() => {
      if (done.signal.aborted) return undefined as never;
      throw deadlineExceeded(call, false);
    });
    try {
      return await Promise.race([work(), late]);
    } finally {
      done.abort(OVER);
    }
  };
  return {
    get: (resource, key) => inTime(count("GET", resource), () => cluster.get(resource, key)),
    list: (resource, options) => inTime(count("LIST", resource), () => cluster.list(resource, options)),
    create: (resource, object, options) =>
      inTime(count("CREATE", resource, options?.subresource), () => cluster.create(resource, object, options)),
    patch: (resource, key, patch, options) =>
      inTime(count("PATCH", resource, options?.subresource), () => cluster.patch(resource, key, patch, options)),
    delete: (resource, key, options) => inTime(count("DELETE", resource), () => cluster.delete(resource, key, options)),
    watch: (resource, options) => {
      count("WATCH", resource);
      return cluster.watch(resource, options);
    },
  };
}

function deadlineExceeded(call: string, isOutcomeKnown: boolean): KubeError {
  return new KubeError(`${call}: the pass is over, its time is used up`, {
    code: 0,
    reason: "DeadlineExceeded",
    isOutcomeKnown,
  });
}
