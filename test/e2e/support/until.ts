/** Waiting for what takes a moment, outside a test. */
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 50;

/** A question that fails is asked again. @throws after `timeoutMs`, with its last failure as the cause */
export async function until(what: string, isTrue: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
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
