/** Keeps a process that makes passes small: 150,000 pods are to fit into what Lambda gives it. */
import { setFlagsFromString } from "node:v8";

/**
 * Garbage is collected before the heap has grown by more than a tenth or 8 MB, instead of up to fourfold, and the part
 * for what is new stays as small as it begins: collections cost more computing, and the process needs half the memory
 * (test/bench/README.md). While V8 looks for garbage in all of the heap it goes on collecting what is new: a decision over
 * many pods would otherwise leave 10 MB and more behind until it is through. That is done in one thread, since others
 * would be waited for where there is no processor for each. Not for webhooks, which would pay with every request. To be
 * called before anything large is read; V8 reads the flags whenever it decides on a size or on a collection (measured
 * with Node 24; of a flag that V8 does not know it says so on stderr, and does nothing).
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=10");
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-separate-gc-phases");
  setFlagsFromString("--no-parallel-scavenge");
}
