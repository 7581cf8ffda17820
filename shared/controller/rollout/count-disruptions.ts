/** Has disruption budgets count pods before they are written to, and forget pods that are back: only with gate RespectDisruptionBudgets. */
import type { LedgerPlan } from "../../core/ledger.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { writeOf } from "../../core/rollout/disruption/counted-pods.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
  idOf,
  keysOfBudgets,
} from "../../core/rollout/disruption/disruption-budget.ts";
import type { Answers } from "../../core/rollout/narrow.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { about } from "../../kube/error.ts";
import { mapLimited } from "../loop/concurrency.ts";
import { attempt } from "./act.ts";
import { forgetDisruptionBudgets, RESOURCES, ROLE, readDisruptionBudgets } from "./disruption-budgets.ts";
import type { Context, Snapshot } from "./observe.ts";
import type { PatchPod } from "./pod-patch.ts";

const WRITES_AT_ONCE = 4;
/** A budget forgets after two minutes that a pod is about to go down. What is not sent by now may be late. */
const COUNTED_FOR_SECONDS = 60;

/** What they say now. False: they select by labels that were not kept of the pods, so that a new snapshot is needed. */
export async function seeDisruptionBudgets(context: Context, snapshot: Snapshot): Promise<boolean> {
  snapshot.disruptionBudgets = await readDisruptionBudgets(context);
  const kept = new Set(snapshot.budgetLabels);
  return keysOfBudgets(snapshot.disruptionBudgets).every((key) => kept.has(key));
}

interface Counted extends Required<Pick<Answers, "uncounted">> {
  /** a budget was written to meanwhile: what it holds may go at once, by what it says now */
  readonly isOutdated: boolean;
}

/**
 * The pods that a budget was not brought to count. Whatever was counted and is not written to is forgotten there after
 * two minutes. `plan`: absent: no pod is to be written to, and only what is over is taken back.
 */
export async function countDisruptions(
  context: Context,
  snapshot: Snapshot,
  { actions, ended = [] }: Pick<Decision, "actions" | "ended">,
  plan: LedgerPlan | undefined,
): Promise<Counted> {
  const wanted = actions.flatMap((action) =>
    action.kind === "PatchPod" && action.disruption && plan?.granted.has(action.pod.uid)
      ? [{ ...action.pod, disruption: action.disruption }]
      : [],
  );
  if (wanted.length + ended.length === 0) return { uncounted: [], isOutdated: false };
  const failed = new Map<string, "full" | "changed">();
  await mapLimited(snapshot.disruptionBudgets, WRITES_AT_ONCE, async (budget) => {
    const own = wanted.filter(({ namespace }) => namespace === budget.namespace);
    const write = writeOf(budget, own, ended);
    if (write === "nothing") return;
    const outcome = write === "full" ? "full" : await count(context, snapshot, budget, write.body);
    if (outcome !== "done") failed.set(idOf(budget), outcome);
  });
  if (failed.size > 0) forgetDisruptionBudgets(context.cluster);
  const isFailed = ({ disruption }: (typeof wanted)[number]) => disruption.budgets.some((id) => failed.has(id));
  const uncounted = wanted.filter(isFailed);
  return { uncounted, isOutdated: uncounted.length > 0 && [...failed.values()].includes("changed") };
}

/** "changed": it was written to meanwhile, or the answer does not tell. */
async function count(
  { cluster }: Context,
  snapshot: Snapshot,
  budget: DisruptionBudget,
  body: object,
): Promise<"done" | "changed"> {
  const resource = RESOURCES[budget.kind];
  const { namespace, name } = budget;
  const outcome = await attempt(() =>
    cluster.patch(resource, { namespace, name }, { type: "merge", body }, { subresource: "status" }),
  );
  if (outcome.kind === "done") {
    const next = outcome.object && disruptionBudgetOf(budget.kind, outcome.object);
    snapshot.disruptionBudgets = snapshot.disruptionBudgets.flatMap((one) => (one === budget ? (next ?? []) : one));
    forgetDisruptionBudgets(cluster);
    return "done";
  }
  if (outcome.kind !== "refused") return "changed";
  if (outcome.error.code !== 403) throw about(`${idOf(budget)} could not be written`, outcome.error);
  throw new Error(`${resource.plural}/status may not be patched, which gate RespectDisruptionBudgets needs: ${ROLE}`, {
    cause: outcome.error,
  });
}

/** True for what was counted so long ago that a budget may have forgotten it: it has to be counted again first. `now`: by the clock by which it was counted. */
export function isForgotten({ disruption }: Pick<PatchPod, "disruption">, now: string): boolean {
  return disruption !== undefined && Math.abs(secondsBetween(disruption.at, now) ?? 0) > COUNTED_FOR_SECONDS;
}
