/** Lambda: what a pass would do now, {"sidecarSet"?: "name"}. Needs no right to write. */
import type { Context } from "aws-lambda";
import { handler as rollout } from "./rollout.ts";

/** The report; `planned` of each SidecarSet lists the actions. */
export function handler(event: { readonly sidecarSet?: string }, context: Pick<Context, "getRemainingTimeInMillis">) {
  return rollout({ ...event, dryRun: true }, context);
}
