/** Waits outside a test for an event that takes a moment. */
import { setTimeout as sleep } from "node:timers/promises";
import { size } from "./size.ts";

const POLL_MS = 50;
/** Machines of a CI are noisy. */
const PATIENCE_MS = size({ ci: 60_000, soak: 600_000 });

/** A question that fails is asked again. @throws after `timeoutMs`, with its last failure as the cause */
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
 * The value of `read` once `check` accepts it: as expect.poll, but for concurrent tests too.
 * @throws what `check` or `read` threw last
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
