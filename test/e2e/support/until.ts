/** Waiting for what takes a moment, outside a test. */
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 50;

/** A question that fails is asked again. @throws after `timeoutMs` */
export async function until(what: string, isTrue: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1000} s`);
    await sleep(POLL_MS);
  }
}
