/** Decides what a decision comes to for readers, who ask neither gates nor metrics: both are taken to answer as they did last. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { type Batched, gateHold, lastRefusal, newlyWanted, withoutBatch } from "./approval.ts";
import { BOOK, isStill } from "./book.ts";
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
  const { hold, selected } = checked.summary;
  if (trouble?.isLasting && (trouble.hold !== "refused" || hold === "refused" || selected > 0))
    return withTrouble(checked, trouble);
  const gate = lastRefusal(sidecarSet)?.message;
  const batch = checked.summary.hold !== "metrics" && gate !== undefined ? newlyWanted(decision, reserved.uids) : [];
  if (gate !== undefined && batch.length > 0) return withoutBatch(decision, batch, gateHold(gate));
  return withEvictionsRefused(sidecarSet, checked);
}

/** The decision while all that it does is to ask for evictions again, which the last pass was refused. */
export function withEvictionsRefused<T extends Batched>({ metadata, status }: SidecarSet, decision: T): T {
  const { summary } = decision;
  const { selected, replaced, used } = summary;
  const hold = "evictionRefused";
  const stored = status?.conditions?.find(({ type }) => type === "Blocked");
  const isKnown = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) && stored?.status === "True";
  if (!isKnown || stored.reason !== BOOK[hold].blocked?.reason) return decision;
  if (replaced === undefined || selected === 0 || replaced.selected !== selected || used > 0) return decision;
  const kept = { ...replaced, selected: 0, kept: replaced.kept + selected };
  return { ...decision, summary: { ...summary, hold, selected: 0, replaced: kept } };
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
