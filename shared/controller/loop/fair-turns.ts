/** Serves objects of many namespaces, so that refused or slow writes in one namespace do not delay others. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { inTurns } from "../../go/sequence.ts";
import type { Clock } from "./clock.ts";
import { mapLimited } from "./concurrency-limit.ts";

/** After this many failures in a namespace its other objects wait for the next round. */
const MAX_FAILURES = 20;
/** After slower work the other objects of its namespace wait too, even if it succeeded. */
const SLOW_MS = 5_000;
/** An object that failed is tried again after this, and after twice as long each time. */
const RETRY_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

interface Turns<T> {
  readonly clock: Clock;
  readonly atOnce: number;
  readonly namespaceOf: (item: T) => string;
}

/** Runs one round; `work` resolves to false on failure. Returns the objects that wait for the next round. */
export async function serveInTurns<T>(
  items: readonly T[],
  { clock, atOnce, namespaceOf }: Turns<T>,
  work: (item: T) => Promise<boolean>,
): Promise<readonly T[]> {
  const failures = new Map<string, number>();
  const left: T[] = [];
  await mapLimited(inTurns(items, namespaceOf), atOnce, async (item) => {
    const namespace = namespaceOf(item);
    const failed = () => failures.get(namespace) ?? 0;
    if (failed() >= MAX_FAILURES) return void left.push(item);
    const beganAtMs = clock.now();
    const isDone = await work(item);
    const isSlow = clock.now() - beganAtMs > SLOW_MS;
    if (isSlow || !isDone) failures.set(namespace, failed() + (isSlow ? MAX_FAILURES : 1));
  });
  return left;
}

/** Remembers for one pass which objects failed, and when each may be tried again. */
export interface Retries {
  readonly mayTry: (object: KubernetesObject) => boolean;
  /** true: for the second time at least, without a success between */
  readonly failed: (object: KubernetesObject) => boolean;
  readonly succeeded: (object: KubernetesObject) => void;
}

export function newRetries(clock: Clock): Retries {
  const waits = new Map<string, { readonly notBeforeMs: number; readonly waitMs: number }>();
  const uidOf = ({ metadata }: KubernetesObject) => metadata?.uid ?? "";
  return {
    mayTry: (object) => (waits.get(uidOf(object))?.notBeforeMs ?? Number.NEGATIVE_INFINITY) <= clock.now(),
    failed: (object) => {
      const last = waits.get(uidOf(object));
      const waitMs = Math.min(2 * (last?.waitMs ?? RETRY_MS / 2), LONGEST_WAIT_MS);
      waits.set(uidOf(object), { notBeforeMs: clock.now() + waitMs, waitMs });
      return last !== undefined;
    },
    succeeded: (object) => waits.delete(uidOf(object)),
  };
}

export function namespaceOf({ metadata }: KubernetesObject): string {
  return metadata?.namespace ?? "";
}
