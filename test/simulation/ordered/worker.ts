/** Runs the seeds that it is sent, in a thread of its own. */
import { parentPort } from "node:worker_threads";
import { runSetSeeds } from "./campaign.ts";

// A violation needs no stack, and worlds make thousands of errors.
Error.stackTraceLimit = 0;
parentPort?.on("message", async ({ from, to }: { readonly from: number; readonly to: number }) =>
  parentPort?.postMessage(await runSetSeeds(from, to)),
);
