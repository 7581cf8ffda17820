/** Decides what disruption budgets would say while a planned rollout takes pods down and has them back. */
import type { Pod } from "../../../api/kubernetes.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import { isPodReady } from "../../pod/is-ready.ts";
import { uidOf } from "../../pod/pod-state.ts";
import { coverageBy, type DisruptionBudget } from "../rules/disruption-budgets/disruption-budget.ts";

/** What they say, given how the pods of the SidecarSet are then. Other pods stay as they were. */
export type BudgetsAhead = (pods: Sequence<Pod>) => readonly DisruptionBudget[];

/**
 * As their controller reckons: what is healthy beyond what has to be is allowed. A budget none of whose pods has changed
 * says what it says now, for whatever reason. `pods`: as they are when the plan begins.
 */
export function budgetsAhead(budgets: readonly DisruptionBudget[], pods: Sequence<Pod>): BudgetsAhead {
  if (budgets.length === 0) return () => budgets;
  const before = new Map<string, Pod>();
  each(pods, (pod) => before.set(uidOf(pod), pod));
  const coverageOf = coverageBy(budgets);
  return (now) => {
    const changes = new Map<DisruptionBudget, Change>();
    each(now, (pod) => {
      const was = before.get(uidOf(pod)) ?? pod;
      if (was !== pod) for (const budget of coverageOf(pod).budgets) note(changes, budget, was, pod);
    });
    return budgets.map((budget) => changed(budget, changes.get(budget)));
  };
}

/** Of the pods of one budget. */
interface Change {
  healthy: number;
  /** names of pods that were written to, and that it need not count as going down any more */
  readonly through: Set<string>;
}

function note(changes: Map<DisruptionBudget, Change>, budget: DisruptionBudget, was: Pod, pod: Pod): void {
  const change = changes.get(budget) ?? { healthy: 0, through: new Set() };
  changes.set(budget, change);
  const name = pod.metadata?.name ?? "";
  const wasHealthy = isPodReady(was) && !budget.disrupted.has(name);
  change.healthy += Number(isPodReady(pod)) - Number(wasHealthy);
  change.through.add(name);
}

function changed(budget: DisruptionBudget, change: Change | undefined): DisruptionBudget {
  if (change === undefined || !budget.isObserved) return budget;
  const healthy = budget.healthy + change.healthy;
  const disrupted = new Map([...budget.disrupted].filter(([name]) => !change.through.has(name)));
  return { ...budget, healthy, allowed: Math.max(0, healthy - budget.desired), disrupted };
}
