/** Time for the embedded cluster: one place that knows every timer, so that closing leaves none behind. */

export interface Clock {
  /** milliseconds since the epoch */
  now(): number;
  /** Runs once after `delayMs`; the returned function cancels. */
  after(delayMs: number, run: () => void): () => void;
  /** Cancels everything that still waits; later calls of `after` do nothing. */
  close(): void;
}

export function systemClock(): Clock {
  const waiting = new Set<NodeJS.Timeout>();
  let isClosed = false;
  return {
    now: () => Date.now(),
    after(delayMs, run) {
      if (isClosed) return () => undefined;
      const timer = setTimeout(() => {
        waiting.delete(timer);
        run();
      }, delayMs);
      waiting.add(timer);
      return () => {
        clearTimeout(timer);
        waiting.delete(timer);
      };
    },
    close() {
      isClosed = true;
      for (const timer of waiting) clearTimeout(timer);
      waiting.clear();
    },
  };
}
