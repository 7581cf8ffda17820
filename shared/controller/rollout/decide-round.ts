/**
 * Decides on a round: decide, ask what only others can tell, narrow. What was learnt is one more observation, by which
 * the same function decides again; no step replaces the decision of another.
 */
import {
  type LedgerPlan,
  type Reservation,
  type Subject,
  subjectOf,
  takenOver,
  withReservations,
} from "../../core/ledger.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { type Answers, type Checked, narrow } from "../../core/rollout/narrow.ts";
import { wantedPods } from "../../core/rollout/replace/plan-replacement.ts";
import { askChecks, askGate } from "./ask-before-batch.ts";
import { countDisruptions } from "./count-disruptions.ts";
import { type Context, decideOn, decideUntilKnown, type Snapshot } from "./observe.ts";
import { isOwn } from "./refused-pods.ts";
import { nameRevision } from "./register-revision.ts";
import { readAsked } from "./workloads.ts";

export interface Decided {
  readonly decision: Decision;
  /** what is reserved for it */
  readonly plan: LedgerPlan;
  /** to be stored with what is reserved */
  readonly checked: Checked;
  /** a disruption budget was written to meanwhile: what it holds may go at once, by what it says now */
  readonly isCountOutdated: boolean;
}

/** `kept`: reservations that hold on. "record": nobody is asked, so the last answers count, and nothing new is reserved. */
export async function decideRound(
  context: Context,
  snapshot: Snapshot,
  kept: readonly Reservation[],
  mode: "act" | "record",
): Promise<Decided> {
  const isActing = mode === "act";
  const subject = subjectOf(snapshot.sidecarSet);
  const reserved = new Set(kept.map(({ uid }) => uid));
  const asking = { reserved, mayAsk: isActing };
  const learners = isActing ? [nameRevision(context, snapshot), readAsked(context, snapshot)] : [];
  const wishBy = (checked?: Checked) => {
    const seen = checked && { checks: checked.known.flatMap(({ record }) => record ?? []), now: checked.at };
    return decideUntilKnown(() => decideOn(context, snapshot, kept, { mode, ...seen }), learners);
  };
  const planOf = (made: Decision) => (isActing ? reserve(context, kept, made, subject) : keep(kept, subject));

  const first = await wishBy();
  const checked = await askChecks(context, snapshot, first, asking);
  const wish = checked.isOther ? await wishBy(checked) : first;
  const narrowed = (answers: Answers) => narrow(wish, { checked, ...answers }, reserved);
  const gate = await askGate(context, snapshot, narrowed({}), asking);
  const allowed = narrowed({ gate });
  const { uncounted, isOutdated } = await countDisruptions(context, snapshot, allowed, planOf(allowed));
  const decision = narrowed({ gate, uncounted });
  return { decision, plan: planOf(decision), checked, isCountOutdated: isOutdated };
}

function reserve(
  context: Context,
  kept: readonly Reservation[],
  { actions, counted }: Decision,
  subject: Subject,
): LedgerPlan {
  const plan = withReservations(kept, wantedPods(actions, new Set(kept.map(({ uid }) => uid))), subject, { counted });
  return takenOver(plan, kept, (one) => isOwn(context, one));
}

function keep(kept: readonly Reservation[], { uid, generation }: Subject): LedgerPlan {
  return { ledger: { uid, generation, reservations: kept }, granted: new Set(), fenced: [] };
}
