/** Runs the shares of a part that it gets, in its own process. */
import { runShare } from "./parts.ts";
import { answerShares } from "./processes.ts";

answerShares(runShare);
