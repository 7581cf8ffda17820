/** A rest between two passes that ends early when there is something to do. */
import { setTimeout as sleep } from "node:timers/promises";

export interface Alarm {
  /** Ends the rest under way, or the next one if there is none. */
  readonly ring: () => void;
  /** Resolves after that many milliseconds, soon after the alarm rang, or when `signal` aborts. */
  readonly rest: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** What is announced by an admission is stored a moment later; and what rings all the time does not keep us busy. */
const SOON_MS = 500;

export function createAlarm(): Alarm {
  let hasRung = false;
  let end = (): void => undefined;
  const pause = (milliseconds: number, signal: AbortSignal) =>
    sleep(milliseconds, undefined, { signal }).catch(() => undefined);
  return {
    ring: () => {
      hasRung = true;
      end();
    },
    rest: async (milliseconds, signal) => {
      const early = new AbortController();
      end = () => early.abort();
      if (!hasRung) await pause(milliseconds, AbortSignal.any([signal, early.signal]));
      if (!hasRung) return;
      hasRung = false;
      await pause(SOON_MS, signal);
    },
  };
}
