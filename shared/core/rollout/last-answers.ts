/** Decides what a decision comes to for readers, who ask neither gates nor metrics: both are taken to answer as they did last. */
import { type Batched, lastRefusal, newlyWanted, withoutBatch } from "./approval.ts";
import { heldBy, knownChecks } from "./checks/check-records.ts";
import type { Observation } from "./decide.ts";

type Answered = Pick<Observation, "sidecarSet" | "checks" | "reserved">;

/** `now`: RFC3339 */
export function asLastAnswered<T extends Batched>(
  { sidecarSet, checks, reserved }: Answered,
  decision: T,
  now: string,
) {
  const metrics = heldBy(knownChecks(sidecarSet, checks), now);
  const gate = lastRefusal(sidecarSet)?.message;
  const batch = metrics || gate !== undefined ? newlyWanted(decision, reserved.uids) : [];
  if (batch.length === 0) return decision;
  if (metrics) return withoutBatch(decision, batch, { hold: "metrics", metrics });
  return gate === undefined ? decision : withoutBatch(decision, batch, { hold: "gate", gate });
}
