/** The world's PodDisruptionBudgets, and their controller, which counts with a delay. */
import type { KubernetesObject, LabelSelector, Pod } from "../../shared/api/kubernetes.ts";
import { selectorMatches } from "../../shared/go/label-selector.ts";
import { DISRUPTION_BUDGETS, PODS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import { isPodReady } from "./objects.ts";
import type { Scheduler } from "./scheduler.ts";

/** A budget, and the number of pods that may be down at the start. */
export interface BudgetPlan {
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector;
  readonly maxUnavailable: number;
}

export interface Budget extends KubernetesObject {
  readonly spec: Pick<BudgetPlan, "selector" | "maxUnavailable">;
  readonly status: {
    readonly observedGeneration: number;
    readonly disruptionsAllowed: number;
    readonly currentHealthy: number;
    readonly desiredHealthy: number;
    readonly expectedPods: number;
    readonly disruptedPods: Readonly<Record<string, string>>;
  };
}

/** The time after which the controller assumes that a counted pod was not disrupted. */
export const FORGOTTEN_MS = 120_000;
const SLOW_MS = [20, 500, 3_000] as const;
const WRITER = "disruption";

export interface DisruptionsOptions {
  readonly plans: readonly BudgetPlan[];
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly counts: FaultCounts;
}

export class Disruptions {
  readonly #options: DisruptionsOptions;
  #isDue = false;
  #isRechecked = false;

  constructor(options: DisruptionsOptions) {
    this.#options = options;
  }

  /** Creates the budgets after the pods. */
  createAll(): void {
    const { plans, server } = this.#options;
    for (const { namespace, name, selector, maxUnavailable } of plans) {
      const metadata = { namespace, name, uid: `budget-${name}`, generation: 1 };
      server.put("user", DISRUPTION_BUDGETS, {
        metadata,
        ...{ spec: { selector, maxUnavailable } },
      } as KubernetesObject);
    }
    this.#sync();
  }

  see({ resource, userAgent }: Write): void {
    if (this.#isDue || userAgent === WRITER || this.#options.plans.length === 0) return;
    if (resource !== PODS.plural && resource !== DISRUPTION_BUDGETS.plural) return;
    const { scheduler, chance } = this.#options;
    this.#isDue = true;
    scheduler.after(chance.between(1, chance.pick(SLOW_MS)), () => this.#sync());
  }

  /** Changes one budget; returns false if there is none. */
  change(): boolean {
    const { server, chance } = this.#options;
    const budgets = server.all<Budget>(DISRUPTION_BUDGETS);
    if (budgets.length === 0) return false;
    this.#demand(chance.pick(budgets), chance.pick([0, 0, 1, 2]));
    return true;
  }

  /** Lets every budget allow at least one disruption once all pods are ready. */
  calm(): void {
    for (const budget of this.#options.server.all<Budget>(DISRUPTION_BUDGETS))
      this.#demand(budget, Math.max(1, budget.spec.maxUnavailable));
  }

  #demand(budget: Budget, maxUnavailable: number): void {
    if (budget.spec.maxUnavailable === maxUnavailable) return;
    const generation = (budget.metadata?.generation ?? 0) + 1;
    const next = { ...budget, metadata: { ...budget.metadata, generation }, spec: { ...budget.spec, maxUnavailable } };
    this.#options.server.put("user", DISRUPTION_BUDGETS, next);
  }

  /** Plans a new count at the time when counted pods may be forgotten. */
  #recheck(): void {
    if (this.#isRechecked) return;
    this.#isRechecked = true;
    this.#options.scheduler.after(FORGOTTEN_MS / 4, () => {
      this.#isRechecked = false;
      this.#sync();
    });
  }

  #sync(): void {
    this.#isDue = false;
    const { server, scheduler, counts } = this.#options;
    for (const budget of server.all<Budget>(DISRUPTION_BUDGETS)) {
      const status = statusOf(budget, server.all<Pod>(PODS), scheduler.nowMs);
      if (Object.keys(status.disruptedPods).length > 0) this.#recheck();
      if (JSON.stringify(status) === JSON.stringify(budget.status)) continue;
      const { disruptedPods: before = {} } = budget.status ?? {};
      if (Object.keys(status.disruptedPods).length < Object.keys(before).length)
        countFault(counts, "disruption forgotten");
      server.put(WRITER, DISRUPTION_BUDGETS, { ...budget, status } as KubernetesObject);
    }
  }
}

export function coversPod({ metadata, spec }: Budget, pod: Pod): boolean {
  return (
    metadata?.namespace === pod.metadata?.namespace && selectorMatches(spec.selector, pod.metadata?.labels) === true
  );
}

/** Computes the status as Kubernetes' own controller does. */
function statusOf(budget: Budget, all: readonly Pod[], nowMs: number): Budget["status"] {
  const pods = all.filter((pod) => coversPod(budget, pod));
  const { disruptedPods: marks = {} } = budget.status ?? {};
  const isDisrupted = ({ metadata: { name = "", deletionTimestamp } = {} }: Pod) =>
    deletionTimestamp === undefined && Date.parse(marks[name] ?? "") + FORGOTTEN_MS >= nowMs;
  const isHealthy = (pod: Pod) => isPodReady(pod) && !pod.metadata?.deletionTimestamp && !isDisrupted(pod);
  const currentHealthy = pods.filter(isHealthy).length;
  const desiredHealthy = Math.max(0, pods.length - budget.spec.maxUnavailable);
  const names = pods
    .filter(isDisrupted)
    .map(({ metadata }) => metadata?.name ?? "")
    .sort();
  return {
    observedGeneration: budget.metadata?.generation ?? 0,
    disruptionsAllowed: pods.length === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy),
    currentHealthy,
    desiredHealthy,
    expectedPods: pods.length,
    disruptedPods: Object.fromEntries(names.map((name) => [name, marks[name] ?? ""])),
  };
}
