/** Shares of the concurrent calls: a namespace's webhook may slow its writes, and others' calls continue. */
import type { Limiter } from "./rate-limit.ts";

/** The share of all places that writes to one namespace may hold. */
const SHARE_OF_NAMESPACE = 1 / 2;
/** The share for writes to all namespaces. Beyond it each namespace may have one write under way. */
const SHARE_OF_NAMESPACES = 3 / 4;

interface NamespaceWrites {
  readonly underWay: Map<string, number>;
  readonly waiting: Set<{ readonly namespace: string; readonly begin: () => void }>;
  total: number;
}

const writesOf = new WeakMap<Limiter, NamespaceWrites>();

/** Waits until the namespace has a place, then like every other call. `atOnce`: number of places of `limiter`. */
export function namespaceShare(limiter: Limiter, atOnce: number, namespace: string): Limiter {
  const writes = writesOf.get(limiter) ?? { underWay: new Map(), waiting: new Set(), total: 0 };
  writesOf.set(limiter, writes);
  return {
    enter: async () => {
      if (hasPlace(writes, namespace, atOnce)) count(writes, namespace, 1);
      else await new Promise<void>((begin) => writes.waiting.add({ namespace, begin }));
      await limiter.enter();
    },
    leave: () => {
      limiter.leave();
      count(writes, namespace, -1);
      beginNext(writes, atOnce);
    },
  };
}

function hasPlace({ underWay, total }: NamespaceWrites, namespace: string, atOnce: number): boolean {
  const own = underWay.get(namespace) ?? 0;
  return own === 0 || (own < SHARE_OF_NAMESPACE * atOnce && total < SHARE_OF_NAMESPACES * atOnce);
}

function count(writes: NamespaceWrites, namespace: string, change: 1 | -1): void {
  const own = (writes.underWay.get(namespace) ?? 0) + change;
  if (own === 0) writes.underWay.delete(namespace);
  else writes.underWay.set(namespace, own);
  writes.total += change;
}

/** Begins at most one write after another has ended. */
function beginNext(writes: NamespaceWrites, atOnce: number): void {
  const next = [...writes.waiting].find(({ namespace }) => hasPlace(writes, namespace, atOnce));
  if (!next) return;
  writes.waiting.delete(next);
  count(writes, next.namespace, 1);
  next.begin();
}
