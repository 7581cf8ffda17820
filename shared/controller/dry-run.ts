/** What a pass would do to one SidecarSet now, without writing anything. */
import { reconcileLedger, withReservations } from "../core/upgrade/ledger.ts";
import { decideOn, lookAt, type RolloutContext, seeReserved, subjectOf } from "./look.ts";
import { describeAction, explain, type SidecarSetReport } from "./report.ts";

export async function planOnly(context: RolloutContext, name: string): Promise<SidecarSetReport> {
  const { tally } = context;
  const look = await lookAt(context, name);
  if (!look) return { name, stop: "gone", why: explain("gone", undefined), tally };
  const subject = subjectOf(look.sidecarSet);
  const reconciled = reconcileLedger(look.stored.ledger, await seeReserved(context, look), subject);
  const kept = reconciled?.kept ?? [];
  const { actions, status, summary } = decideOn(context, look, new Set(kept.map(({ uid }) => uid)));
  const wanted = actions.filter((action) => action.kind === "PatchPod").map(({ pod }) => pod);
  const { granted, fenced } = withReservations(kept, wanted, subject);
  const planned = [
    ...fenced.map((pod) => `fence pod ${pod.namespace}/${pod.name}: it was reserved and is not wanted any more`),
    ...actions.filter((action) => action.kind !== "PatchPod" || granted.has(action.pod.uid)).map(describeAction),
  ];
  const why = explain("oneRound", summary);
  return { name, stop: "oneRound", why, generation: subject.generation, status, summary, tally, planned };
}
