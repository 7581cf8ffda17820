/** Returns a cluster that fails on purpose at chosen calls: the process, the network or the answer. */
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";

export type Fault =
  /** the process ends after the call is carried out and before it sees the answer */
  | "killAfter"
  /** the process ends, and the delayed call is carried out when the test calls `releaseLate` */
  | "killLate"
  /** the process stops before the call is sent, until the test calls `thaw` */
  | "freeze"
  /** the call is carried out, and its answer is lost */
  | "lostAnswer"
  /** the answer is 503, and the call is not carried out */
  | "unavailable"
  | "tooManyRequests";

export interface FaultyCluster extends Cluster {
  /** the calls so far in order, such as "PATCH pods" */
  readonly calls: string[];
  /** resolves when the fault first occurs */
  readonly struck: Promise<void>;
  readonly thaw: () => void;
  /** carries out the delayed call; resolves when the call has ended, also with an error */
  readonly releaseLate: () => Promise<void>;
}

const NEVER = new Promise<never>(() => undefined);

const failures: Readonly<Record<Exclude<Fault, "killAfter" | "killLate" | "freeze">, () => KubeError>> = {
  lostAnswer: () => new KubeError("the connection was closed", { code: 0, reason: "Reset", isOutcomeKnown: false }),
  unavailable: () => new KubeError("try again", { code: 503, reason: "ServiceUnavailable" }),
  tooManyRequests: () => new KubeError("slow", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 }),
};

/**
 * Causes `fault` at each call for which `isStruck(index, call)` returns true; `index` starts at 0. After a kill no call
 * is answered.
 */
export function faultyCluster(
  cluster: Cluster,
  fault: Fault,
  isStruck: (index: number, call: string) => boolean,
): FaultyCluster {
  const calls: string[] = [];
  const struck = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  let isKilled = false;
  let late: (() => Promise<unknown>) | undefined;
  const strike = async <T>(work: () => Promise<T>): Promise<T> => {
    isKilled = fault === "killAfter" || fault === "killLate";
    if (fault === "killAfter" || fault === "lostAnswer") await work().catch(() => undefined);
    if (fault === "killLate") late = work;
    struck.resolve();
    if (isKilled) return NEVER;
    if (fault in failures) throw failures[fault as keyof typeof failures]();
    await thawed.promise;
    return await work();
  };
  const run = async <T>(call: string, work: () => Promise<T>): Promise<T> => {
    if (isKilled) return NEVER;
    const isHit = isStruck(calls.length, call);
    calls.push(call);
    const result = await (isHit ? strike(work) : work());
    return isKilled ? NEVER : result;
  };
  return {
    calls,
    struck: struck.promise,
    thaw: thawed.resolve,
    releaseLate: async () => {
      await late?.().catch(() => undefined);
    },
    get: (resource, key) => run(`GET ${resource.plural}`, () => cluster.get(resource, key)),
    serverTimeMs: cluster.serverTimeMs,
    list: (resource, options) => run(`LIST ${resource.plural}`, () => cluster.list(resource, options)),
    create: (resource, object, options) =>
      run(`CREATE ${resource.plural}`, () => cluster.create(resource, object, options)),
    patch: (resource, key, patch, options) =>
      run(`PATCH ${resource.plural}${options?.subresource ? "/status" : ""}`, () =>
        cluster.patch(resource, key, patch, options),
      ),
    delete: (resource, key, options) => run(`DELETE ${resource.plural}`, () => cluster.delete(resource, key, options)),
    watch: (resource, options) => cluster.watch(resource, options),
  };
}
