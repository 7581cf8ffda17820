/**
 * Time that passes when nothing else is left to do. A sleep of an hour costs nothing, and no test depends on the
 * machine.
 */
import { vi } from "vitest";

const FAKED = [
  ...(["setTimeout", "clearTimeout", "setInterval", "clearInterval"] as const),
  ...(["setImmediate", "clearImmediate", "Date", "performance"] as const),
];

let realWork = 0;

/**
 * Makes timers, `node:timers/promises` and clocks virtual until `stopVirtualTime`. Virtual time does not wait for
 * sockets and files.
 */
export function startVirtualTime(): void {
  vi.useFakeTimers({ toFake: FAKED, now: Date.now(), fakeNodeBuiltins: true });
  vi.setTimerTickMode("nextTimerAsync");
}

export function stopVirtualTime(): void {
  vi.useRealTimers();
}

/** Stops virtual time while the work waits for something outside this process, such as a socket. */
export async function offTheClock<T>(work: () => Promise<T>): Promise<T> {
  realWork++;
  vi.setTimerTickMode("manual");
  try {
    return await work();
  } finally {
    realWork--;
    if (realWork === 0) vi.setTimerTickMode("nextTimerAsync");
  }
}
