import type { Decision } from "../core/decide.ts";
import {
  isGenerationObservable,
  isSameLedger,
  type LedgerPlan,
  type Reservation,
  reconcileLedger,
  type Subject,
  withReservations,
} from "../core/upgrade/ledger.ts";
import { act } from "./act.ts";
import { swapLedger } from "./ledger-store.ts";
import { decideOn, type Look, type RolloutContext, seeReserved, subjectOf } from "./look.ts";
import { passGate } from "./pass-gate.ts";
import { decideWithRevision, truncateRevisions } from "./register-revision.ts";
import { undoHalted } from "./undo-halted.ts";
import { type Written, writePods } from "./write-pods.ts";
import { writeStatus } from "./write-status.ts";

export interface RoundResult {
  readonly decision: Decision;
  /** pods that were to be written to: what came of it stands in the ledger until the next round */
  readonly written: number;
  /** reservations that stand */
  readonly reserved: number;
  /** every pod that there was room for carries its patch, and the decision has more of them */
  readonly isMoreToWrite: boolean;
  /** the SidecarSet said something else before all pods were written to */
  readonly isOutdated: boolean;
  /** the status has changed, but was written just now */
  readonly isStatusOwed: boolean;
}

const NOTHING_WRITTEN: Written = { done: new Set(), isOutdated: false };

/**
 * "record" frees what is seen to be through and writes the status; no pod is written to.
 * undefined: somebody else wrote the ledger or the SidecarSet meanwhile, a new look is needed.
 */
export async function round(
  context: RolloutContext,
  look: Look,
  mode: "act" | "record",
): Promise<RoundResult | undefined> {
  context.tally.rounds++;
  const subject = subjectOf(look.sidecarSet);
  const reconciled = reconcileLedger(look.stored.ledger, await seeReserved(context, look), subject);
  if (!reconciled) return undefined;
  const { kept } = reconciled;
  const decided = look.sidecarSet;
  const wish = await (mode === "act" ? decideWithRevision : decideOn)(context, look, kept);
  const decision = await passGate(context, look, wish, { kept, mayAsk: mode === "act" });
  const plan = mode === "act" ? reserve(kept, decision, subject) : keep(kept, subject);
  if (!(await store(context, look, plan))) return undefined;
  const isObservable = isGenerationObservable(plan.ledger, subject);
  const statusWrite = await writeStatus(context, look, decision, { isObservable, mayWait: mode === "act" });
  if (statusWrite === "lost") return undefined;
  const { done, isOutdated } = mode === "act" ? await carryOut(context, look, decision, plan) : NOTHING_WRITTEN;
  if (mode === "act") await undoHalted(context, look, decision, decided);
  const { granted, fenced } = plan;
  return {
    decision,
    written: granted.size + fenced.length,
    reserved: plan.ledger.reservations.length,
    isMoreToWrite: done.size > 0 && done.size === granted.size && decision.summary.selected > granted.size,
    isOutdated,
    isStatusOwed: statusWrite === "owed",
  };
}

async function carryOut(context: RolloutContext, look: Look, decision: Decision, plan: LedgerPlan): Promise<Written> {
  const written = await writePods(context, look, decision, plan);
  await tell(context, look, decision, written.done);
  await truncateRevisions(context, look, decision);
  return written;
}

function reserve(kept: readonly Reservation[], decision: Decision, subject: Subject): LedgerPlan {
  const wanted = decision.actions.filter((action) => action.kind === "PatchPod").map(({ pod }) => pod);
  return withReservations(kept, wanted, subject);
}

function keep(kept: readonly Reservation[], { uid, generation }: Subject): LedgerPlan {
  return { ledger: { uid, generation, reservations: kept }, granted: new Set(), fenced: [] };
}

async function store(context: RolloutContext, look: Look, { ledger }: LedgerPlan): Promise<boolean> {
  if (isSameLedger(look.stored.ledger, ledger)) return true;
  const place = { namespace: context.kruiseNamespace, owner: look.sidecarSet };
  const stored = await swapLedger(context.cluster, place, look.stored, ledger);
  if (stored) look.stored = stored;
  return stored !== undefined;
}

/** The same event is recorded once a pass, and only for what was done. */
async function tell(
  context: RolloutContext,
  look: Look,
  { actions }: Decision,
  done: ReadonlySet<string>,
): Promise<void> {
  const patched = new Set(actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.uid] : [])));
  for (const event of actions.filter((action) => action.kind === "RecordEvent")) {
    const { uid } = event.regarding;
    const key = JSON.stringify([uid, event.reason, event.message]);
    if (context.told.has(key) || (patched.has(uid) && !done.has(uid))) continue;
    context.told.add(key);
    await act(event, { ...context, sidecarSet: look.sidecarSet });
  }
}
