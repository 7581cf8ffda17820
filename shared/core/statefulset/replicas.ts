/** Decides what the pods in range need: created, replaced, waited for, fixed; one after the other, or all at once. */
import type { Pod } from "../../api/kubernetes.ts";
import { hasStaleClaim } from "./claims/retention.ts";
import { isScaleBudgetSpent, type Pass } from "./pass.ts";
import {
  isCreated,
  isFinished,
  isPending,
  isRunningAndReady,
  isTerminating,
  lifecycleState,
  revisionOf,
  secondsUntilAvailable,
} from "./pods/pod-phase.ts";
import { refresh } from "./pods/refresh.ts";
import { updateInPlace } from "./pods/update-in-place.ts";
import { createMissingClaims, createPod, deletePod, mendPod, ownClaims } from "./pods/write-pod.ts";
import type { Steps } from "./step.ts";
import { updateOrder } from "./update-order.ts";

/** "exit": a set that keeps order does no more in this pass. "break": no further pod is looked at. */
type Verdict = "next" | "exit" | "break";

/** False when the pass ends here. */
export function* keepReplicas(pass: Pass): Steps<boolean> {
  for (const pod of pass.slots) {
    const verdict = pod ? yield* keepReplica(pass, pod) : "next";
    if (verdict === "break") return true;
    if (verdict === "exit" && pass.isMonotonic) return false;
  }
  return true;
}

function* keepReplica(pass: Pass, pod: Pod): Steps<Verdict> {
  if (isFinished(pod)) return yield* replace(pass, pod);
  if (!isCreated(pod)) return yield* create(pass, pod);
  if (isPending(pod)) yield* completeClaims(pass, pod);
  if (isTerminating(pod)) {
    if (pass.isMonotonic) return "exit";
    if (isScaleBudgetSpent(pass)) return "break";
  }
  yield* refresh(pass, pod);
  const verdict = yield* unblocked(pass, pod, mustWaitFor(pass, pod));
  if (verdict !== "next") return verdict;
  yield* mendPod(pass, pod);
  return "next";
}

/** Compat: once the scale budget is used up a failed pod stays as it is (statefulset.md, section 3.e). */
function* replace(pass: Pass, pod: Pod): Steps<Verdict> {
  const isSpent = isScaleBudgetSpent(pass);
  if (isSpent && !pass.gates.StatefulSetUnblocked) return "break";
  if (!isTerminating(pod)) yield* deletePod(pass, pod);
  return isSpent ? "break" : "exit";
}

function* create(pass: Pass, pod: Pod): Steps<Verdict> {
  if (pass.gates.StatefulSetAutoDeletePVC && (yield* hasStaleClaim(pass.set, pod))) return "exit";
  yield* createPod(pass, pod);
  if (pass.isMonotonic) return "exit";
  return isScaleBudgetSpent(pass) ? "break" : "next";
}

function* completeClaims(pass: Pass, pod: Pod): Steps<void> {
  yield* createMissingClaims(pass, pod);
  yield* ownClaims(pass, pod);
}

/**
 * Compat: without the gate an order is kept by waiting for a pod that only its update can help, or whose hook only the
 * update asks for (statefulset.md, sections 4 and 7). A pod that is down costs nothing when it is updated.
 */
function* unblocked(pass: Pass, pod: Pod, verdict: Verdict): Steps<Verdict> {
  if (verdict !== "exit" || !pass.gates.StatefulSetUnblocked) return verdict;
  if (isRunningAndReady(pod)) return lifecycleState(pod) === "PreparingUpdate" ? "next" : verdict;
  if (mayBeUpdated(pass, pod) && !(yield* updateInPlace(pass, pod))) yield* deletePod(pass, pod);
  return verdict;
}

function mayBeUpdated({ set, slots, update, gates }: Pass, pod: Pod): boolean {
  const { type, rollingUpdate: strategy } = set.spec.updateStrategy ?? {};
  const revision = update.metadata?.name ?? "";
  if (type === "OnDelete" || strategy?.paused || revisionOf(pod) === revision) return false;
  const isPreparingUpdated = gates.PreparingUpdateAsUpdate;
  return updateOrder(slots, { strategy, revision, replicas: set.spec.replicas ?? 1, isPreparingUpdated }).includes(pod);
}

function mustWaitFor(pass: Pass, pod: Pod): Verdict {
  const { isMonotonic, progress, minReadySeconds, now } = pass;
  if (!isMonotonic && progress.scaleBudget === undefined) return "next";
  const seconds = secondsUntilAvailable(pod, minReadySeconds, now);
  if (seconds === 0 || !(isMonotonic || isScaleBudgetSpent(pass))) return "next";
  if (seconds !== undefined) progress.waits.push(seconds);
  return isMonotonic ? "exit" : "break";
}
