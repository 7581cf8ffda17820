/**
 * Narrows a decision by outside answers: metric checks, a gate, disruption budgets. An answer only removes actions.
 * Passes ask for answers; readers assume the last ones.
 */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Action } from "../actions.ts";
import { BOOK } from "./book.ts";
import { isStill } from "./hold-effects.ts";
import { isOfWrites, lastTrouble, withTrouble } from "./pass-trouble.ts";
import { type Held, heldBy, type KnownCheck } from "./rules/checks/check-records.ts";
import { BUDGETS_NAMED, type BudgetsInTheWay, NO_BUDGETS } from "./rules/disruption-budgets/guard.ts";
import {
  type Batched,
  type GateHold,
  gateHold,
  lastRefusal,
  newlyWanted,
  type Subject,
  subjectOf,
} from "./rules/gate/approval.ts";
import { checksNow } from "./rules/waves/standing.ts";
import type { Observed } from "./select/observed-states.ts";

/** The results of the metric checks that were just evaluated. */
export interface Checked {
  readonly known: readonly KnownCheck[];
  /** time of the evaluation, RFC 3339 */
  readonly at: string;
}

/** Outside answers about a decision. An absent answer was not requested, or it allows the decision. */
export interface Answers {
  readonly checked?: Checked | undefined;
  /** the reason why a gate does not allow the batch, in one sentence */
  readonly gate?: string | undefined;
  /** pods that could not be registered with their disruption budgets */
  readonly uncounted?: readonly Uncounted[];
}

interface Uncounted {
  readonly uid: string;
  /** ids of the disruption budgets */
  readonly disruption: { readonly budgets: readonly string[] };
  /** the reason in one sentence */
  readonly why: string;
}

/**
 * Removes from the decision what the answers do not allow. `reserved`: uids of pods that an earlier pass could reserve.
 */
export function narrow<T extends Batched>(
  decision: T,
  { checked, gate, uncounted = [] }: Answers,
  reserved: ReadonlySet<string>,
) {
  const passed = byChecks(decision, checked, reserved);
  const batch = gate === undefined ? [] : newlyWanted(passed, reserved);
  const allowed = gate === undefined || batch.length === 0 ? passed : without(passed, batch, gateHold(gate));
  return withoutUncounted(allowed, uncounted);
}

/** The decision with the last known answers. `now`: RFC 3339 */
export function asLastAnswered<T extends Batched>(
  { sidecarSet, checks, reserved }: Pick<Observed, "sidecarSet" | "checks" | "reserved">,
  decision: T,
  now: string,
) {
  const checked = { known: checksNow(sidecarSet, checks, decision.summary.rules.waves), at: now };
  const passed = narrow(decision, { checked }, reserved.uids);
  const trouble = lastTrouble(sidecarSet);
  const { hold, selected } = passed.summary;
  if (trouble?.isLasting && (!isOfWrites(trouble.hold) || isOfWrites(hold) || selected > 0))
    return withTrouble(passed, trouble);
  const allowed = narrow(passed, { gate: lastRefusal(sidecarSet)?.message }, reserved.uids);
  return allowed === passed ? withEvictionsRefused(sidecarSet, passed) : allowed;
}

/** The decision when its only action would repeat evictions that the API server refused in the last pass. */
export function withEvictionsRefused<T extends Batched>({ metadata, status }: SidecarSet, decision: T): T {
  const { summary } = decision;
  const { selected, rules, used } = summary;
  const { replacement } = rules;
  const hold = "evictionRefused";
  const stored = status?.conditions?.find(({ type }) => type === "Blocked");
  const isKnown = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) && stored?.status === "True";
  if (!isKnown || stored.reason !== BOOK[hold].blocked?.reason) return decision;
  if (replacement === undefined || selected === 0 || replacement.selected !== selected || used > 0) return decision;
  const kept = { ...replacement, selected: 0, kept: replacement.kept + selected };
  return { ...decision, summary: { ...summary, hold, selected: 0, rules: { ...rules, replacement: kept } } };
}

/** True while a wave waits only for its checks. */
export function isChecking({
  summary: {
    hold,
    rules: { waves },
  },
}: Batched): boolean {
  return waves?.checkedFrom !== undefined && !isStill(hold);
}

/** Removes the batch when checks do not allow it, and says which checks the wave waits for. */
function byChecks<T extends Batched>(decision: T, checked: Checked | undefined, reserved: ReadonlySet<string>) {
  const metrics = checked && heldBy(checked.known, checked.at);
  const batch = metrics ? newlyWanted(decision, reserved) : [];
  if (!metrics || (batch.length === 0 && !isChecking(decision))) return decision;
  const wave = isChecking(decision) ? `wave ${decision.summary.rules.waves?.atWork} is not passed yet: ` : "";
  return without(decision, batch, {
    hold: "metrics",
    rules: { metrics: { ...metrics, reason: `${wave}${metrics.reason}` } },
  });
}

/** The reason why a batch is not allowed: a gate's answer, as one sentence, or metric checks. */
type InTheWay = GateHold | { readonly hold: "metrics"; readonly rules: { readonly metrics: Held } };

function without<T extends Batched>(decision: T, batch: readonly Subject[], inTheWay: InTheWay) {
  const withheld = new Set(batch.map(({ uid }) => uid));
  const { beyondRoom = 0, ...summary } = decision.summary;
  const selected = Math.max(0, summary.selected - beyondRoom - withheld.size);
  const rules = { ...summary.rules, ...inTheWay.rules };
  return {
    ...decision,
    actions: actionsWithout(decision, withheld),
    summary: { ...summary, selected, hold: inTheWay.hold, rules },
  };
}

function withoutUncounted<T extends Batched>(decision: T, uncounted: readonly Uncounted[]) {
  if (uncounted.length === 0) return decision;
  const withheld = new Set(uncounted.map(({ uid }) => uid));
  const { waiting, full, names }: BudgetsInTheWay = decision.summary.rules.disruptionBudgets ?? NO_BUDGETS;
  const disruptionBudgets: BudgetsInTheWay = {
    waiting: waiting + withheld.size,
    full: [...new Set([...full, ...uncounted.map(({ why }) => why)])].slice(0, BUDGETS_NAMED),
    names: [...new Set([...names, ...uncounted.flatMap(({ disruption }) => disruption.budgets)])],
  };
  const selected = Math.max(0, decision.summary.selected - withheld.size);
  const summary = {
    ...decision.summary,
    hold: "disruptionBudget" as const,
    selected,
    rules: { ...decision.summary.rules, disruptionBudgets },
  };
  return { ...decision, actions: actionsWithout(decision, withheld), summary };
}

function actionsWithout({ actions }: Batched, withheld: ReadonlySet<string>): readonly Action[] {
  return actions.filter((action) => {
    const subject = action.kind === "PatchPodCondition" ? action.pod : subjectOf(action);
    return subject === undefined || !withheld.has(subject.uid);
  });
}
