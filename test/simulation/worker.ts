/** Runs the shares that it is sent, in a thread of its own. */
import { parentPort } from "node:worker_threads";
import { runShare, type Share } from "./parts.ts";

// A violation needs no stack, and worlds make thousands of errors.
Error.stackTraceLimit = 0;
parentPort?.on("message", async (share: Share) => parentPort?.postMessage(await runShare(share)));
