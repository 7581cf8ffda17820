/** Decides what a decision comes to for readers, who ask neither gates nor metrics: both are taken to answer as they did last. */

import { type Batched, gateHold, lastRefusal, newlyWanted, withoutBatch } from "./approval.ts";
import { isStill } from "./book.ts";
import { heldBy, type KnownCheck } from "./checks/check-records.ts";
import { lastTrouble, withTrouble } from "./pass-trouble.ts";
import type { Observed } from "./select/observed-states.ts";
import { checksNow } from "./waves/wave-checks.ts";

type Answered = Pick<Observed, "sidecarSet" | "checks" | "reserved">;

/** `now`: RFC3339 */
export function asLastAnswered<T extends Batched>(
  { sidecarSet, checks, reserved }: Answered,
  decision: T,
  now: string,
) {
  const known = checksNow(sidecarSet, checks, decision.summary.waves);
  const checked = byChecks(decision, known, { reserved: reserved.uids, now });
  const trouble = lastTrouble(sidecarSet);
  if (trouble?.isLasting && (trouble.hold !== "refused" || checked.summary.selected > 0))
    return withTrouble(checked, trouble);
  const gate = lastRefusal(sidecarSet)?.message;
  const batch = checked.summary.hold !== "metrics" && gate !== undefined ? newlyWanted(decision, reserved.uids) : [];
  return gate === undefined || batch.length === 0 ? checked : withoutBatch(decision, batch, gateHold(gate));
}

/** The decision as far as its checks allow it: without a batch that they are in the way of, saying what a wave waits for. */
export function byChecks<T extends Batched>(
  decision: T,
  known: readonly KnownCheck[],
  { reserved, now }: { readonly reserved: ReadonlySet<string>; readonly now: string },
) {
  const metrics = heldBy(known, now);
  const batch = metrics ? newlyWanted(decision, reserved) : [];
  if (!metrics || (batch.length === 0 && !isChecking(decision))) return decision;
  const wave = isChecking(decision) ? `wave ${decision.summary.waves?.atWork} is not passed yet: ` : "";
  return withoutBatch(decision, batch, {
    hold: "metrics",
    metrics: { ...metrics, reason: `${wave}${metrics.reason}` },
  });
}

/** A wave waits for nothing but its checks. */
export function isChecking({ summary: { hold, waves } }: Batched): boolean {
  return waves?.checkedFrom !== undefined && !isStill(hold);
}
