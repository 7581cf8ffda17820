/** Setup: captures a test's output on stdout and stderr, and shows it if the test fails. */
import { afterEach } from "vitest";

const kept: string[] = [];
/** The function of the prototype, because an earlier test file of this worker may have replaced the stream's own. */
const { write } = Object.getPrototypeOf(process.stdout) as typeof process.stdout;

for (const stream of [process.stdout, process.stderr]) {
  stream.write = ((chunk: string | Uint8Array, encoding?: unknown, done?: () => void) => {
    kept.push(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
    const callback = typeof encoding === "function" ? encoding : done;
    callback?.();
    return true;
  }) as typeof stream.write;
}

afterEach(({ task }) => {
  const text = kept.splice(0).join("");
  if (task.result?.state === "fail" && text !== "")
    write.call(process.stdout, `${task.fullTestName} wrote:\n${text}\n`);
});
