/** Decides how a pod is replaced: by one eviction, and an entry in the ledger that waits for its successor. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { addSeconds } from "../../../../go/seconds-between.ts";
import { type Action, BY_NAME, type Departure } from "../../../actions.ts";
import { controllerOf, isOwnerKept } from "../../../pod/replaced.ts";
import type { BudgetUse } from "../../select/budget.ts";
import { preconditionOf } from "../../upgrade/pod-actions.ts";
import type { Replacement } from "./replacement.ts";

/** A pod's own default. */
const GRACE_SECONDS = 30;
/** Longer ones are not waited for: a tenant who says ten years would hold a place of the budget for ten years. */
const MOST_GRACE_SECONDS = 3_600;
/** Another pod is there so long after the first should be gone, or its controller is taken not to want one. */
const SUCCESSOR_SECONDS = 600;

export type EvictPod = Extract<Action, { kind: "EvictPod" }>;

/** What is planned for a pod that only a new one can follow. */
export type ReplacementPlan =
  | { readonly kind: "evicted"; readonly departure: Departure }
  /** an eviction of a pod of its controller was refused a moment ago */
  | { readonly kind: "kept" }
  /** its workload is restarted instead */
  | { readonly kind: "left" };

/** `placeOf`: what is awaited once a pod goes whose successor may have any name. */
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
  // By name where pods have lasting ones: others of the same set may come back meanwhile, and they are not this one.
  const place = kind === "StatefulSet" ? { of: BY_NAME, since: "" } : placeOf(pod, now);
  return { kind: "evicted", departure: { namespace, name, uid, owner, until, ...place } };
}

/** RFC3339: so long another one is awaited in the place of a pod that goes at `now`. undefined: it is gone already. */
export function awaitedUntil(pod: Pod | undefined, now: string): string {
  const grace = pod === undefined ? 0 : (pod.spec.terminationGracePeriodSeconds ?? GRACE_SECONDS);
  return addSeconds(now, Math.max(0, Math.min(grace, MOST_GRACE_SECONDS)) + SUCCESSOR_SECONDS) ?? now;
}

export function eviction(pod: Pod, departure: Departure, usesBudget: boolean): EvictPod {
  return { kind: "EvictPod", pod: preconditionOf(pod), usesBudget, departure };
}

/** What a decision evicts. */
export function evictionsOf(actions: readonly Action[]): readonly EvictPod[] {
  return actions.filter((action) => action.kind === "EvictPod");
}

/**
 * Pods and workloads that a ledger is asked to reserve for a decision. One that is reserved already is never evicted or
 * restarted by that: only the pass that reserves it sends it, so it is fenced, and reserved again. A patch of a pod is the
 * same from any pass.
 */
export function wantedPods(actions: readonly Action[], kept: ReadonlySet<string>) {
  return actions.flatMap((action) => {
    if (action.kind === "PatchPod") return [action.pod];
    if (action.kind === "RestartWorkload" && !kept.has(action.workload.uid)) return [action.workload];
    return action.kind === "EvictPod" && !kept.has(action.pod.uid) ? [action.pod] : [];
  });
}
