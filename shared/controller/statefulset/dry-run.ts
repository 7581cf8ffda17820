/** What a pass would do about one set now, without writing anything. */
import type { StatefulSet } from "../../api/stateful-set.ts";
import { MAX_OF_SET, reconcileLedger, withReservations } from "../../core/ledger.ts";
import { explainSet, setStanding } from "../../core/statefulset/explain/explain-set.ts";
import { planSet } from "../../core/statefulset/plan/plan-set.ts";
import { planSetRollout } from "../../core/statefulset/plan/plan-set-rollout.ts";
import { observationOf, observeSet, type SetContext, seeReserved, subjectOf } from "./observe.ts";
import { describeRequest, explainStop, type SetReport } from "./report.ts";
import { wantedStates } from "./reserve.ts";

/** What a dry run foresees beyond what would be done now. */
export interface SetPlanWish {
  /** how long a pod is taken to be not ready after it was made, or its images were changed */
  readonly readyAfterSeconds: number;
  /** as it would be stored in the place of the one that is; absent: that one */
  readonly set?: StatefulSet;
}

/** Without a wish the report says what would be done now, and not how it would go on. */
export async function planSetOnly(context: SetContext, wish?: SetPlanWish): Promise<SetReport> {
  const { key, tally } = context;
  const snapshot = await observeSet(context, true, wish?.set);
  if (!snapshot) return { ...key, stop: "gone", why: explainStop("gone", undefined), tally };
  const subject = subjectOf(snapshot.set);
  const kept = reconcileLedger(snapshot.stored.ledger, await seeReserved(context, snapshot), subject)?.kept ?? [];
  const seen = observationOf(context, snapshot, new Set(kept.map(({ uid }) => uid)));
  const plan = planSet(seen, snapshot);
  const { fenced } = withReservations(kept, wantedStates(plan), subject, { limit: MAX_OF_SET });
  const standing = setStanding(seen, plan.outcome.updateRevision);
  const planned = [
    ...fenced.map(({ namespace, name }) => `fence ${namespace}/${name}: it was reserved and is not wanted any more`),
    ...plan.writes.flatMap((request) => describeRequest(request) ?? []),
  ];
  const { generation } = subject;
  const { status } = snapshot.set;
  return {
    ...key,
    stop: "oneRound",
    why: explainSet(standing),
    generation,
    ...(status ? { status } : {}),
    standing,
    tally,
    planned,
    ...(wish ? { plan: planSetRollout(seen, snapshot, wish) } : {}),
  };
}
