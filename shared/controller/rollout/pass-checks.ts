/** Evaluates checks of metrics before each batch, and before a wave is passed, where a SidecarSet has some; until all have passed nothing new is reserved. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { LedgerPlan, Reservation } from "../../core/ledger.ts";
import { newlyWanted } from "../../core/rollout/approval.ts";
import {
  dueChecks,
  evaluated,
  failedCheck,
  formatRecords,
  type KnownCheck,
} from "../../core/rollout/checks/check-records.ts";
import { judge, type Measured } from "../../core/rollout/checks/measure.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { byChecks, isChecking } from "../../core/rollout/last-answers.ts";
import { checksNow } from "../../core/rollout/waves/wave-checks.ts";
import { type Context, checksIn, decideContext, decideOn, type Snapshot } from "./observe.ts";

const TIMEOUT_MS = 5_000;
const LEAST_TIMEOUT_MS = 500;
/** Left for the pass when the answers are there. */
const RESERVE_MS = 2_000;
/** Answers that were under way for longer say nothing of now: the process was frozen meanwhile. */
const LATE_MS = 10_000;

/** What may be done of a decision, and what came of the checks: to be stored with what is reserved by it. */
export interface Checked {
  readonly decision: Decision;
  readonly known: readonly KnownCheck[];
}

/**
 * Pods that are reserved passed when they were. A pass is for one batch: the ledger's swap makes use of it, so that of
 * two processes that saw it one begins again. `mayAsk`: false goes by what came of the checks last.
 */
export async function passChecks(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
  { kept, mayAsk }: { readonly kept: readonly Reservation[]; readonly mayAsk: boolean },
): Promise<Checked> {
  const { now } = decideContext(context, snapshot.sidecarSet);
  const before = checksNow(snapshot.sidecarSet, checksIn(snapshot), decision.summary.waves);
  const reserved = new Set(kept.map(({ uid }) => uid));
  const isAsked = isChecking(decision) || (before.length > 0 && newlyWanted(decision, reserved).length > 0);
  const known = isAsked && mayAsk ? await evaluate(context, snapshot.sidecarSet, before, now) : before;
  if (!isAsked) return { decision, known };
  const checks = known.flatMap(({ record }) => record ?? []);
  // A wave without pods is passed by what is known of its checks: by this too. As of when they were asked: one that has
  // become complete would be so since a second after its evaluations, which would not count.
  const isOther = isChecking(decision) || decision.summary.waves?.isTurning || failedCheck(known) !== undefined;
  const next = isOther ? decideOn(context, snapshot, kept, { checks, now, mode: mayAsk ? "act" : "record" }) : decision;
  return { decision: next.halt === undefined ? byChecks(next, known, { reserved, now }) : next, known };
}

/** Without an annotation the ledger stays what it was. */
export function withChecks(plan: LedgerPlan, { decision, known }: Checked, kept: readonly Reservation[]): LedgerPlan {
  const isBatch = newlyWanted(decision, new Set(kept.map(({ uid }) => uid))).some(({ uid }) => plan.granted.has(uid));
  const checks = formatRecords(known, isBatch);
  return checks === undefined ? plan : { ...plan, ledger: { ...plan.ledger, checks } };
}

async function evaluate(
  context: Context,
  sidecarSet: SidecarSet,
  known: readonly KnownCheck[],
  at: string,
): Promise<readonly KnownCheck[]> {
  const due = new Set(dueChecks(known, at));
  return await Promise.all(
    known.map(async (one) => {
      if (!due.has(one)) return one;
      return evaluated(one, sidecarSet, judge(one.check, await measure(context, one.check.query)), at);
    }),
  );
}

async function measure({ gates, clock, endsAtMs }: Context, query: string): Promise<Measured> {
  if (!gates?.measure) return { nothing: "no server may be asked, since PROMETHEUS_SERVER names none" };
  const leftMs = Math.floor(endsAtMs - RESERVE_MS - clock.now());
  const askedAtMs = clock.epochMs();
  const measured = await gates.measure(query, Math.max(LEAST_TIMEOUT_MS, Math.min(TIMEOUT_MS, leftMs)));
  const tookMs = Math.abs(clock.epochMs() - askedAtMs);
  return tookMs > LATE_MS ? { nothing: `the answer came ${Math.round(tookMs / 1_000)} s late` } : measured;
}
