/**
 * Pods that finish, pods that a kubelet evicts, and pods with gates. A gate keeps a pod unscheduled or not ready until
 * somebody opens it.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { PODS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import { countFault, type Fault, type FaultCounts } from "./faults.ts";
import { isFinished, timeOf, withReady } from "./objects.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Users } from "./users.ts";

/**
 * `task`: the pod finishes. `evicted`: its kubelet evicts it, and it stays as Failed beside its replacement. `missed`:
 * an evicted pod without its sidecars. The other two kinds have a gate.
 */
export type BystanderKind = "task" | "evicted" | "missed" | "unscheduled" | "unproven";

export interface BystanderPlan {
  readonly kind: BystanderKind;
  /** the time at which the pod finishes or its gate opens; absent: after a judge has looked at the other pods */
  readonly atMs?: number;
  /** true if the pod of a task fails */
  readonly isFailed?: boolean;
}

/** The condition that the readiness gate of a pod names. */
export const PROVEN = "example.com/proven";
const UNSCHEDULED = {
  phase: "Pending",
  conditions: [
    {
      type: "PodScheduled",
      status: "False",
      reason: "SchedulingGated",
      message: "Scheduling is blocked due to non-empty scheduling gates",
    },
  ],
};
const NAMESPACE = "shop";
const FAULT_OF: Readonly<Record<BystanderKind, Fault>> = {
  task: "pod finished",
  evicted: "pod evicted by its kubelet",
  missed: "pod evicted by its kubelet",
  unscheduled: "scheduling gate opened late",
  unproven: "readiness gate opened late",
};

interface BystandersOptions {
  readonly plans: readonly BystanderPlan[];
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly users: Users;
  readonly counts: FaultCounts;
}

export class Bystanders {
  readonly #options: BystandersOptions;

  constructor(options: BystandersOptions) {
    this.#options = options;
  }

  createAll(): void {
    const { plans, users, scheduler, server } = this.#options;
    for (const [index, plan] of plans.entries()) {
      const name = `${plan.kind}-${index}`;
      const pod = users.createPod(NAMESPACE, name, plan.kind === "missed" ? () => false : undefined);
      if (pod.spec.schedulingGates !== undefined)
        server.put("scheduler", PODS, { ...this.#peek(name), status: UNSCHEDULED } as Pod);
      if (plan.atMs !== undefined) scheduler.after(plan.atMs, () => this.#act(name, plan));
    }
  }

  /** Finishes the tasks and opens the gates that are left. */
  calm(): void {
    for (const [index, plan] of this.#options.plans.entries()) this.#act(`${plan.kind}-${index}`, plan);
    // Pods that were recreated later under the same names have their gates again.
    for (const pod of this.#options.server.all<Pod>(PODS)) this.#open(pod);
  }

  #peek(name: string): Pod | undefined {
    return this.#options.server.peek<Pod>(PODS, { namespace: NAMESPACE, name });
  }

  #act(name: string, { kind, isFailed = false }: BystanderPlan): void {
    const pod = this.#peek(name);
    if (pod === undefined || pod.metadata?.deletionTimestamp || isFinished(pod)) return;
    if (kind === "task") this.#finish(pod, isFailed);
    else if (kind === "evicted" || kind === "missed") this.#evict(pod);
    else if (!this.#open(pod)) return;
    countFault(this.#options.counts, FAULT_OF[kind]);
  }

  /**
   * Evicts a pod as a kubelet does on a full node: this pod stays, and the controller creates one with another name.
   */
  #evict(pod: Pod): void {
    const { namespace = "", name = "", labels = {}, ownerReferences = [] } = pod.metadata ?? {};
    const reason = { reason: "Evicted", message: "The node was low on resource: memory. " };
    this.#finish({ ...pod, status: { ...pod.status, ...reason } }, true);
    const owner = ownerReferences.find(({ controller }) => controller === true);
    if (owner) this.#options.users.createPod(namespace, `${name}-next`, undefined, { owner, labels });
  }

  #finish(pod: Pod, isFailed: boolean): void {
    const { server, scheduler } = this.#options;
    const terminated = { exitCode: Number(isFailed), finishedAt: timeOf(scheduler.nowMs) };
    const containerStatuses = pod.status?.containerStatuses?.map((one) => ({
      ...one,
      ready: false,
      state: { terminated },
    }));
    const conditions = withReady(pod, false, scheduler.nowMs);
    const status = { ...pod.status, phase: isFailed ? "Failed" : "Succeeded", containerStatuses, conditions };
    server.put("kubelet", PODS, { ...pod, status } as Pod);
  }

  /** Returns false if the pod has no closed gate. */
  #open(pod: Pod): boolean {
    const { server, scheduler } = this.#options;
    const { schedulingGates: _, ...spec } = pod.spec;
    if (pod.spec.schedulingGates !== undefined) {
      server.put("user", PODS, { ...pod, spec, status: { phase: "Pending" } } as Pod);
      return true;
    }
    if (!isUnproven(pod)) return false;
    const proven = { type: PROVEN, status: "True", lastTransitionTime: timeOf(scheduler.nowMs) };
    const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== PROVEN);
    server.put("user", PODS, { ...pod, status: { ...pod.status, conditions: [...others, proven] } } as Pod);
    return true;
  }
}

/** True for a pod with a closed readiness gate. */
export function isUnproven({ spec, status }: Pod): boolean {
  const isTrue = (name: string) => status?.conditions?.some(({ type, status }) => type === name && status === "True");
  return (spec.readinessGates ?? []).some(({ conditionType }) => !isTrue(conditionType));
}

/** Returns the fields of the spec for this kind of pod. */
export function gatesOf(name: string): Partial<Pod["spec"]> {
  if (name.startsWith("unscheduled-")) return { schedulingGates: [{ name: "example.com/quota" }] };
  return name.startsWith("unproven-") ? { readinessGates: [{ conditionType: PROVEN }] } : {};
}
