/** Limits the memory of a process that makes passes: 150,000 pods must fit into a Lambda function. */
import { setFlagsFromString } from "node:v8";

/**
 * Keeps the heap near the used size, for passes. Call it before anything large is read, because V8 reads the flags when
 * it chooses a size or collects. V8 then collects before the heap has grown by a tenth or 8 MB, instead of fourfold,
 * and the part for new objects stays small. Collections cost more computing, and the process needs half the memory
 * (test/bench/README.md). While V8 marks the whole heap it still collects new objects, because a decision over many
 * pods would otherwise leave more than 10 MB. One thread collects, because on one processor a pass would wait for more
 * threads. Webhooks do not use these flags, because every request would pay. An unknown flag only prints a line on
 * stderr (measured with Node 24).
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=10");
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-separate-gc-phases");
  setFlagsFromString("--no-parallel-scavenge");
}
