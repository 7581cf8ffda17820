/** Runs the shares of a part that this process gets. */
import { runShare } from "./parts.ts";
import { answerShares } from "./processes.ts";

answerShares(runShare);
