/** Time that passes when nothing else is left to do: a sleep of an hour costs nothing, and no test depends on the machine. */
import { vi } from "vitest";

const FAKED = [
  ...(["setTimeout", "clearTimeout", "setInterval", "clearInterval"] as const),
  ...(["setImmediate", "clearImmediate", "Date", "performance"] as const),
];

let realWork = 0;

/** Timers, `node:timers/promises` and clocks are virtual until `stopVirtualTime`. Sockets and files are not waited for. */
export function startVirtualTime(): void {
  vi.useFakeTimers({ toFake: FAKED, now: Date.now(), fakeNodeBuiltins: true });
  vi.setTimerTickMode("nextTimerAsync");
}

export function stopVirtualTime(): void {
  vi.useRealTimers();
}

/** Stops virtual time while something outside this process, such as a socket, is waited for. */
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
