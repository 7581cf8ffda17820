/** A share of the seeds, in a thread of its own. */
import { parentPort, workerData } from "node:worker_threads";
import { runSeeds } from "./campaign.ts";

const { from, to } = workerData as { readonly from: number; readonly to: number };
const STEP = 100;

Error.stackTraceLimit = 0;
for (let seed = from; seed < to; seed += STEP) parentPort?.postMessage(await runSeeds(seed, Math.min(to, seed + STEP)));
