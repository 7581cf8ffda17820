/** What a pass would do to one SidecarSet now, without writing anything. */
import type { SidecarSet } from "../api/sidecarset.ts";
import type { Decision } from "../core/decide.ts";
import { gateOf, newlyWanted } from "../core/gate/gate.ts";
import { counted } from "../core/lib/counted.ts";
import { planRollout } from "../core/plan.ts";
import { reconcileLedger, withReservations } from "../core/upgrade/ledger.ts";
import { timestamp } from "./clock.ts";
import { describeAction } from "./describe-action.ts";
import { explain } from "./explain.ts";
import { decideOn, type Look, lookAt, type RolloutContext, seeReserved, subjectOf } from "./look.ts";
import { observePods } from "./observe.ts";
import type { SidecarSetReport } from "./report.ts";

/** What a dry run foresees beyond the actions of now. */
export interface PlanWish {
  /** how long a pod is taken to be not ready after its images were changed */
  readonly readyAfterSeconds: number;
  /** as it would be stored in the place of the one that is; absent: that one */
  readonly sidecarSet?: SidecarSet;
}

/** Where nobody says how long pods take. */
export const READY_AFTER_SECONDS = 5;

/** Without a wish the report says what would be done now, and not how it would go on. */
export async function planOnly(context: RolloutContext, name: string, wish?: PlanWish): Promise<SidecarSetReport> {
  const { tally } = context;
  const look = await lookWith(context, name, wish?.sidecarSet);
  if (!look) return { name, stop: "gone", why: explain("gone", undefined), tally };
  const subject = subjectOf(look.sidecarSet);
  const reconciled = reconcileLedger(look.stored.ledger, await seeReserved(context, look), subject);
  const kept = reconciled?.kept ?? [];
  const reserved = new Set(kept.map(({ uid }) => uid));
  const decision = decideOn(context, look, kept);
  const { actions, status, summary } = decision;
  const wanted = actions.filter((action) => action.kind === "PatchPod").map(({ pod }) => pod);
  const { granted, fenced } = withReservations(kept, wanted, subject);
  const planned = [
    ...stepsBefore(look.sidecarSet, decision, reserved),
    ...fenced.map((pod) => `fence pod ${pod.namespace}/${pod.name}: it was reserved and is not wanted any more`),
    ...actions.filter((action) => action.kind !== "PatchPod" || granted.has(action.pod.uid)).map(describeAction),
  ];
  const why = explain("oneRound", summary);
  const plan = wish === undefined ? {} : { plan: foresee(context, look, reserved, wish) };
  return { name, stop: "oneRound", why, generation: subject.generation, status, summary, tally, planned, ...plan };
}

/** What a pass would do before it writes to pods. No gate is asked. */
function stepsBefore(sidecarSet: SidecarSet, decision: Decision, reserved: ReadonlySet<string>): readonly string[] {
  const gate = gateOf(sidecarSet);
  const batch = gate ? newlyWanted(decision, reserved).length : 0;
  return [
    ...(gate && batch > 0 ? [`ask the gate at ${gate.host} whether ${counted(batch, "pod")} may be upgraded`] : []),
    ...(decision.undo ? [`SidecarSet ${sidecarSet.metadata?.name}: ${decision.undo.message}`] : []),
  ];
}

/** The pods of one that is not stored are those that it would select. */
async function lookWith(context: RolloutContext, name: string, changed?: SidecarSet): Promise<Look | undefined> {
  const look = await lookAt(context, name);
  if (!look || changed === undefined) return look;
  const { metadata } = look.sidecarSet;
  const generation = (metadata?.generation ?? 0) + 1;
  const identity = { ...metadata, ...changed.metadata, uid: metadata?.uid ?? "", generation };
  const sidecarSet = { ...look.sidecarSet, metadata: identity, spec: changed.spec };
  return { ...look, sidecarSet, observed: await observePods(context.cluster, sidecarSet) };
}

function foresee(context: RolloutContext, look: Look, reserved: ReadonlySet<string>, wish: PlanWish) {
  const { sidecarSet, revisions, taken, observed } = look;
  const { kruiseNamespace, clock, isBudgetStrict: isStrict } = context;
  const observation = { sidecarSet, pods: observed.view.pods, revisions, taken, reserved };
  const { readyAfterSeconds } = wish;
  return planRollout(observation, { now: timestamp(clock), kruiseNamespace, isStrict, readyAfterSeconds });
}
