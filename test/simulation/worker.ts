/** Runs the shares of a part that it is sent, in a process of its own. */
import { runShare } from "./parts.ts";
import { answerShares } from "./processes.ts";

answerShares(runShare);
