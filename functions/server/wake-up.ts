/** Sleep between two passes that ends early when there is something to do. */
import { setTimeout as timeout } from "node:timers/promises";

export interface WakeUp {
  /** Ends the present sleep, or the next one if there is none. */
  readonly wake: () => void;
  /** Resolves after that many milliseconds, soon after `wake` was called, or when `signal` aborts. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/**
 * The delay after an announcement: the object is stored a moment later, and frequent announcements must not fill the
 * time.
 */
const SOON_MS = 500;

export function createWakeUp(): WakeUp {
  let isAwake = false;
  let end = (): void => undefined;
  const pause = (milliseconds: number, signal: AbortSignal) =>
    timeout(milliseconds, undefined, { signal }).catch(() => undefined);
  return {
    wake: () => {
      isAwake = true;
      end();
    },
    sleep: async (milliseconds, signal) => {
      const early = new AbortController();
      end = () => early.abort();
      if (!isAwake) await pause(milliseconds, AbortSignal.any([signal, early.signal]));
      if (!isAwake) return;
      isAwake = false;
      await pause(SOON_MS, signal);
    },
  };
}
