/**
 * Registers pods with their disruption budgets before writes to them, and releases pods that are ready again. Only with
 * the gate RespectDisruptionBudgets.
 */
import type { LedgerPlan } from "../../core/ledger.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import type { Answers } from "../../core/rollout/narrow.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
  idOf,
  keysOfBudgets,
} from "../../core/rollout/rules/disruption-budgets/disruption-budget.ts";
import { writeOf } from "../../core/rollout/rules/disruption-budgets/guard.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { inTurns } from "../../go/sequence.ts";
import { about, isDenied } from "../../kube/error.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { attempt } from "./act.ts";
import { forgetDisruptionBudgets, RESOURCES, ROLE, readDisruptionBudgets } from "./disruption-budgets.ts";
import type { Context, Snapshot } from "./observe.ts";
import type { PatchPod } from "./pod-patch.ts";
import { NamespaceTurns } from "./refused-writes.ts";

const WRITES_AT_ONCE = 4;
/** Limit of seconds from a registration to its write. A budget forgets a pod that is going down after two minutes. */
const COUNTED_FOR_SECONDS = 60;

/**
 * Reads the budgets. A budget that selects by labels which the pass did not keep holds all pods of its namespace until
 * they are read again. So an owner who keeps changing selectors delays no other namespace.
 */
export async function seeDisruptionBudgets(context: Context, snapshot: Snapshot): Promise<void> {
  const kept = snapshot.budgetLabels;
  snapshot.disruptionBudgets = (await readDisruptionBudgets(context)).map((budget) => {
    const isKept = keysOfBudgets([budget]).every((key) => kept?.get(budget.namespace)?.has(key));
    return isKept ? budget : { ...budget, unclear: "selects by labels that the pass has not read yet" };
  });
}

interface Counted extends Required<Pick<Answers, "uncounted">> {
  /** true: a budget has been written to, so the pods that it holds may be allowed now */
  readonly isOutdated: boolean;
}

/**
 * The pods that a budget did not accept. A budget forgets a counted pod without a write after two minutes. `plan`:
 * absent if no pod is written to; then only finished disruptions are removed.
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
  const failed = new Map<string, Failure>();
  const turns = new NamespaceTurns(context);
  const writes = snapshot.disruptionBudgets.flatMap((budget) => {
    const own = wanted.filter(({ namespace }) => namespace === budget.namespace);
    const write = writeOf(budget, own, ended);
    if (write === "full") failed.set(idOf(budget), { why: CHANGED });
    return typeof write === "string" ? [] : [write];
  });
  const inOrder = inTurns(writes, ({ budget }) => budget.namespace);
  await mapLimited(inOrder, WRITES_AT_ONCE, async ({ budget, body }) => {
    if (turns.isLeft(budget)) return void failed.set(idOf(budget), { why: SLOW });
    const end = turns.begin(budget);
    const failure = await count(context, snapshot, budget, body).finally(end);
    if (failure) failed.set(idOf(budget), failure);
  });
  if (failed.size > 0) forgetDisruptionBudgets(context.cluster);
  const uncounted = wanted.flatMap((pod) => {
    const id = pod.disruption.budgets.find((budget) => failed.has(budget));
    return id === undefined ? [] : [{ ...pod, why: `${id} ${failed.get(id)?.why}` }];
  });
  const isOutdated = uncounted.length > 0 && [...failed.values()].some(({ isOutdated }) => isOutdated);
  return { uncounted, isOutdated };
}

/** The reason why a budget did not count its pods. */
interface Failure {
  /** the reason, which completes "the budget …" */
  readonly why: string;
  /** true: the budget has changed since it was read, and may count its pods at the next look */
  readonly isOutdated?: boolean;
}

const CHANGED = "was written to meanwhile";
const SLOW = "waits for the next round, because writes to its namespace are slow";

/** The failure; undefined: the budget counts them. A refusal by it, its policy or webhook holds only its own pods. */
async function count(
  context: Context,
  snapshot: Snapshot,
  budget: DisruptionBudget,
  body: object,
): Promise<Failure | undefined> {
  const { cluster } = context;
  const resource = RESOURCES[budget.kind];
  const { namespace, name } = budget;
  const outcome = await attempt(() =>
    cluster.patch(resource, { namespace, name }, { type: "merge", body }, { subresource: "status" }),
  );
  if (outcome.kind === "done") {
    const next = outcome.object && disruptionBudgetOf(budget.kind, outcome.object);
    snapshot.disruptionBudgets = snapshot.disruptionBudgets.flatMap((one) => (one === budget ? (next ?? []) : one));
    forgetDisruptionBudgets(cluster);
    return undefined;
  }
  const { code, message } = outcome.error;
  if (outcome.kind === "refused" && code === 0) throw about(`${idOf(budget)} could not be written`, outcome.error);
  const isOutdated = outcome.kind !== "refused" && mayRetryNow(context, idOf(budget));
  if (outcome.kind !== "refused" && outcome.kind !== "unknown" && !isDenied(message))
    return { why: CHANGED, isOutdated };
  const advice = code === 403 ? ` (if no policy or webhook refuses it: ${ROLE})` : "";
  return { why: `could not be written: ${message}${advice}`, isOutdated };
}

/** Limit of immediate retries for a budget in a pass: its owner may change it all the time, or a webhook refuse it. */
const MOST_RETRIES = 3;
const retriesOf = new WeakMap<Context, Map<string, number>>();

function mayRetryNow(context: Context, budget: string): boolean {
  const retries = retriesOf.get(context) ?? new Map<string, number>();
  const count = (retries.get(budget) ?? 0) + 1;
  retriesOf.set(context, retries.set(budget, count));
  return count <= MOST_RETRIES;
}

/**
 * True for a count so old that the budget may have forgotten it. The pod must be counted again first. `now`: by the
 * clock of the count.
 */
export function isForgotten({ disruption }: Pick<PatchPod, "disruption">, now: string): boolean {
  return disruption !== undefined && Math.abs(secondsBetween(disruption.at, now) ?? 0) > COUNTED_FOR_SECONDS;
}
