/** Returns disruption budgets as they are stored. */
import type { KubernetesObject, LabelSelector } from "../../../shared/api/kubernetes.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
} from "../../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";

export interface BudgetFacts {
  readonly name?: string;
  readonly selector?: LabelSelector | null;
  readonly allowed?: number;
  readonly healthy?: number;
  readonly desired?: number;
  readonly generation?: number;
  readonly observedGeneration?: number;
  readonly unready?: string;
  readonly disrupted?: Readonly<Record<string, string>>;
}

export function storedBudget(facts: BudgetFacts = {}): KubernetesObject {
  const { name = "one", selector = {}, allowed = 1, healthy = 3, desired = 2, unready } = facts;
  const { generation = 1, observedGeneration = generation, disrupted = {} } = facts;
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { namespace: "default", name, uid: `uid-${name}`, resourceVersion: "5", generation },
    ...{
      spec: { selector, ...(unready ? { unhealthyPodEvictionPolicy: unready } : {}) },
      status: {
        observedGeneration,
        disruptionsAllowed: allowed,
        currentHealthy: healthy,
        desiredHealthy: desired,
        disruptedPods: disrupted,
      },
    },
  } as KubernetesObject;
}

export function budgetOf(facts: BudgetFacts = {}): DisruptionBudget {
  const budget = disruptionBudgetOf("PodDisruptionBudget", storedBudget(facts));
  if (!budget) throw new Error("it is none");
  return budget;
}
