/** Waits outside a test for an event that takes some time. */
import { setTimeout as sleep } from "node:timers/promises";
import { size } from "./size.ts";

const POLL_MS = 50;
/** The time limit, because machines of a CI are slow at times. */
const PATIENCE_MS = size({ ci: 60_000, soak: 600_000 });

/** Repeats a check that fails. @throws after `timeoutMs`, with the last failure as its cause */
export async function until(what: string, isTrue: () => Promise<boolean>, timeoutMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  const asked = () =>
    isTrue().catch((error: unknown) => {
      cause = error;
      return false;
    });
  while (!(await asked())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1000} s`, { cause });
    await sleep(POLL_MS);
  }
}

/**
 * Returns the value of `read` once `check` accepts it. Works like expect.poll, but also in concurrent tests. @throws
 * the last error of `check` or `read`
 */
export async function eventually<T>(read: () => Promise<T>, check: (value: T) => void): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      const value = await read();
      check(value);
      return value;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await sleep(2 * POLL_MS);
  }
}
