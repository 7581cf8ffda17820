/** Keeps a process that makes passes small: 150,000 pods are to fit into what Lambda gives it. */
import { setFlagsFromString } from "node:v8";

/**
 * Garbage is collected before the heap has grown by more than a tenth or 8 MB, instead of up to fourfold, and the part
 * for what is new stays as small as it begins: collections cost more computing, and the process needs half the memory
 * (docs/benchmarks.md). Not for webhooks, which would pay with every request. To be called before anything large is
 * read; V8 reads both of them whenever it decides on a size.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=10");
  setFlagsFromString("--semi-space-growth-factor=1");
}
