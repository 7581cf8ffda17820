/** Runs the shares that it is sent, in a process of its own. */
import { runShare, type Share } from "./parts.ts";

// A violation needs no stack, and worlds make thousands of errors.
Error.stackTraceLimit = 0;
process.on("message", async (share: Share) => process.send?.(await runShare(share)));
// Also when whoever handed them out has been killed.
process.on("disconnect", () => process.exit());
