/** Lambda: what a pass would do now, and for one SidecarSet how it would go on, {"sidecarSet"?: "name", "cluster"?: "name"}. Needs no right to write. */
import type { Context } from "aws-lambda";
import { handler as rollout } from "./rollout.ts";
import type { RolloutEvent } from "./rollout-site.ts";

type DryRunEvent = Pick<RolloutEvent, "sidecarSet" | "cluster" | "readyAfterSeconds">;

/** The report; `planned` of each SidecarSet lists the actions, `plan` of one that was asked for the steps to come. */
export function handler(event: DryRunEvent, context: Pick<Context, "getRemainingTimeInMillis">) {
  return rollout({ ...event, dryRun: true }, context);
}
