/** The end of a process that has done all there was to do. */

/** What is printed last is on its way by then. */
const PRINTED_MS = 100;

/** Soon, whatever calls are still under way that nobody waits for: an API server that does not answer keeps one for half a minute. */
export function endSoon(): void {
  setTimeout(() => process.exit(), PRINTED_MS).unref();
}
