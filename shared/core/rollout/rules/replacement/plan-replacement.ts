/** The replacement of a pod: an eviction, and an entry in the ledger that waits for the successor. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { addSeconds } from "../../../../go/seconds-between.ts";
import { type Action, BY_NAME, type Departure } from "../../../actions.ts";
import { controllerOf, isOwnerKept } from "../../../pod/replaced.ts";
import type { BudgetUse } from "../../select/budget.ts";
import { preconditionOf } from "../../upgrade/pod-change.ts";
import type { Replacement } from "./replacement.ts";

/** Kubernetes' default of terminationGracePeriodSeconds. */
const GRACE_SECONDS = 30;
/** Limit of an awaited grace period in seconds. A tenant's ten years would otherwise block the budget for ten years. */
const MOST_GRACE_SECONDS = 3_600;
/** Seconds to wait for a successor after the pod should be gone. Then its controller seems to create none. */
const SUCCESSOR_SECONDS = 600;

export type EvictPod = Extract<Action, { kind: "EvictPod" }>;

/** The plan for a pod that only a new pod can replace. */
export type ReplacementPlan =
  | { readonly kind: "evicted"; readonly departure: Departure }
  /** the API server refused to evict a pod of the same controller a moment ago */
  | { readonly kind: "kept" }
  /** the workload of the pod is restarted instead */
  | { readonly kind: "left" };

/** The plan. `placeOf`: the departure of a pod whose successor may have any name. */
export function planReplacement(
  pod: Pod,
  placeOf: Replacement["placeOf"],
  budgetUse: BudgetUse,
  now: string,
): ReplacementPlan {
  if (budgetUse.rules.restarts) return { kind: "left" };
  const { uid: owner = "", kind } = controllerOf(pod) ?? {};
  if (isOwnerKept(budgetUse.rules.replacement?.keptOwners, pod.metadata?.namespace, owner)) return { kind: "kept" };
  const { namespace = "", name = "", uid = "" } = pod.metadata ?? {};
  const until = awaitedUntil(pod, now);
  // The successor of a pod with a stable name has that name: other pods of the set may return meanwhile.
  const place = kind === "StatefulSet" ? { of: BY_NAME, since: "" } : placeOf(pod, now);
  return { kind: "evicted", departure: { namespace, name, uid, owner, until, ...place } };
}

/** End of the wait for a successor, RFC3339, if the pod goes at `now`. Undefined pod: it is gone already. */
export function awaitedUntil(pod: Pod | undefined, now: string): string {
  const grace = pod === undefined ? 0 : (pod.spec.terminationGracePeriodSeconds ?? GRACE_SECONDS);
  return addSeconds(now, Math.max(0, Math.min(grace, MOST_GRACE_SECONDS)) + SUCCESSOR_SECONDS) ?? now;
}

export function eviction(pod: Pod, departure: Departure, usesBudget: boolean): EvictPod {
  return { kind: "EvictPod", pod: preconditionOf(pod), usesBudget, departure };
}

/** The evictions of a decision. */
export function evictionsOf(actions: readonly Action[]): readonly EvictPod[] {
  return actions.filter((action) => action.kind === "EvictPod");
}

/**
 * Pods and workloads that a decision asks the ledger to reserve. A reserved one is not evicted or restarted again: only
 * the pass that reserves sends these, so it is fenced and reserved again. A patch of a pod is the same from any pass.
 */
export function wantedPods(actions: readonly Action[], kept: ReadonlySet<string>) {
  return actions.flatMap((action) => {
    if (action.kind === "PatchPod") return [action.pod];
    if (action.kind === "RestartWorkload" && !kept.has(action.workload.uid)) return [action.workload];
    return action.kind === "EvictPod" && !kept.has(action.pod.uid) ? [action.pod] : [];
  });
}
