/** Serves objects of many namespaces. Refused or slow writes in one namespace do not delay the others. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { inTurns } from "../../go/sequence.ts";
import type { Clock } from "./clock.ts";
import { mapLimited } from "./concurrency-limit.ts";

/** Number of failures in a namespace after which its other objects wait for the next round. */
const MAX_FAILURES = 20;
/** Milliseconds of work after which the other objects of the namespace wait too, even if the work succeeded. */
const SLOW_MS = 5_000;
/** Milliseconds before a failed object is tried again. The time doubles with each failure. */
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

/** Failed objects of one pass, and the time at which each may be tried again. */
export interface Retries {
  readonly mayTry: (object: KubernetesObject) => boolean;
  /** records a failure; true: it is at least the second without a success between */
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
