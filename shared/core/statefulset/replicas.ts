/** Creates the missing pods of a set, and removes surplus pods. */

import type { Pod } from "../../api/kubernetes.ts";
import type { PersistentVolumeClaim } from "../../api/stateful-set.ts";
import type { PodState } from "../ledger.ts";
import { ordinalOf } from "../pod/workload.ts";
import { areClaimsRetained, hasStaleClaim, retainClaims } from "./claims/claims.ts";
import { whyNotCompleted } from "./in-place/update-completed.ts";
import { isScaleBudgetSpent, type Pass } from "./pass.ts";
import {
  isCreated,
  isFinished,
  isHealthy,
  isPending,
  isRunningAndReady,
  isTerminating,
  lifecycleState,
  revisionOf,
  secondsUntilAvailable,
} from "./pods/pod-phase.ts";
import { refresh, updateInPlace } from "./pods/update-in-place.ts";
import { createMissingClaims, createPod, deletePod, mendPod, ownClaims } from "./pods/write-pod.ts";
import { updateOrder } from "./rolling-update.ts";
import { attempt, type Request, StepFailed, type Steps, throwFailures } from "./step.ts";

/** "exit": an ordered set ends this pass. "break": the loop ends. */
type Verdict = "next" | "exit" | "break";

/** Keeps the replicas; false: the pass ends here. */
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

/** Compat: when the scale budget is used up, a failed pod stays as it is (statefulset.md, section 3.e). */
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
 * Continues in place of waiting for a pod that only its update can help, or whose hook only the update asks for
 * (statefulset.md, sections 4 and 7). Updating an unready pod costs nothing. Compat: without the gate the order waits.
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

// Removes the pods out of range, from the highest ordinal down or all at once.

/** Limit of a batch: a failure of one of its pods does not stop the others. */
const LARGEST_BATCH = 500;

/** Removes pods; false: the pass ends here. */
export function* removeCondemned(pass: Pass): Steps<boolean> {
  if (pass.gates.StatefulSetAutoDeletePVC) yield* forEach(pass, (pod) => giveClaims(pass, pod));
  const unhealthy = firstUnhealthy(pass);
  return yield* forEach(pass, (pod) => remove(pass, pod, unhealthy));
}

/** The unhealthy pod with the lowest ordinal. A pod that is still to be created is unhealthy, too. */
function firstUnhealthy({ slots, condemned }: Pass): Pod | undefined {
  const unhealthy = [...slots, ...condemned].filter((pod) => pod !== undefined && !isHealthy(pod)) as readonly Pod[];
  return unhealthy.reduce<Pod | undefined>(
    (first, pod) => (first && ordinalOf(first) <= ordinalOf(pod) ? first : pod),
    undefined,
  );
}

type Work = (pod: Pod) => Steps<boolean>;

function* forEach(pass: Pass, work: Work): Steps<boolean> {
  return yield* pass.isMonotonic ? inOrder(pass, work) : inBatches(pass, work);
}

/** Works until one verdict ends the pass. */
function* inOrder({ condemned }: Pass, work: Work): Steps<boolean> {
  for (const pod of condemned) if (!(yield* work(pod))) return false;
  return true;
}

/** Works in batches of 1, 2, 4, … pods, and ends after the first batch with a failure. */
function* inBatches({ condemned }: Pass, work: Work): Steps<boolean> {
  let rest = condemned;
  for (let size = 1; rest.length > 0; size = Math.min(size * 2, LARGEST_BATCH)) {
    const results: unknown[] = [];
    for (const pod of rest.slice(0, size)) results.push(yield* attempt(work(pod)));
    throwFailures(results.filter((result) => result instanceof StepFailed));
    rest = rest.slice(size);
  }
  return true;
}

function* giveClaims({ updateSet, range }: Pass, pod: Pod): Steps<boolean> {
  if (!(yield* areClaimsRetained(updateSet, pod, range))) yield* retainClaims(updateSet, pod, range);
  return true;
}

/** Removes a pod; false: a set that keeps order does no more in this pass. */
function* remove(pass: Pass, pod: Pod, unhealthy: Pod | undefined): Steps<boolean> {
  const { isMonotonic, minReadySeconds, now } = pass;
  if (isTerminating(pod)) return !isMonotonic;
  const isSettled = isRunningAndReady(pod) && secondsUntilAvailable(pod, minReadySeconds, now) === 0;
  const { StatefulSetUnblocked: isUnblocked } = pass.gates;
  if (isMonotonic && !isSettled && pod !== unhealthy && !(isUnblocked && isFinished(pod))) {
    // Compat: no other component opens its gate, so otherwise it is never ready (statefulset.md, section 3.g).
    if (isUnblocked) yield* refresh(pass, pod);
    return false;
  }
  // Compat: after a pod that a hook keeps, the next one is deleted (statefulset.md, section 3.g).
  return (yield* deletePod(pass, pod)) === "kept" || !isMonotonic;
}

// Finds the writes of a pass that need a reservation: they take down a pod, or remove its claims.

const CLAIM = "claim:";

/**
 * The object to reserve, in the state that the write requires: a pod that is deleted, updated in place or made unready,
 * or a claim that is tied to its pod. Undefined for any other write.
 */
export function takenAway(request: Request): PodState | undefined {
  switch (request.kind) {
    case "DeletePod":
      return stateOf(request.pod);
    case "UpdatePod":
    case "UpdatePodStatus":
      return isChanged(request) || (isUp(request.before) && !isUp(request.after)) ? stateOf(request.before) : undefined;
    case "UpdateClaim":
      return podOwners(request.after) > podOwners(request.before) ? claimState(request.before) : undefined;
    default:
      return undefined;
  }
}

/** The state of a claim in a ledger: its uid marks it as a claim. */
export function claimState(claim: PersistentVolumeClaim): PodState {
  const state = stateOf(claim);
  return { ...state, uid: `${CLAIM}${state.uid}` };
}

export function isClaimState({ uid }: Pick<PodState, "uid">): boolean {
  return uid.startsWith(CLAIM);
}

/** The uid of the object, without the mark of a claim. */
export function uidWithoutMark({ uid }: Pick<PodState, "uid">): string {
  return uid.startsWith(CLAIM) ? uid.slice(CLAIM.length) : uid;
}

function stateOf({ metadata }: Pick<Pod, "metadata">): PodState {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata ?? {};
  return { namespace, name, uid, resourceVersion };
}

function isChanged({ before, after }: { readonly before: Pod; readonly after: Pod }): boolean {
  const images = ({ spec }: Pod) => spec.containers.map(({ image }) => image).join("\n");
  return revisionOf(before) !== revisionOf(after) || images(before) !== images(after);
}

function isUp(pod: Pod): boolean {
  return isHealthy(pod) && whyNotCompleted(pod) === undefined;
}

function podOwners({ metadata }: PersistentVolumeClaim): number {
  return (metadata?.ownerReferences ?? []).filter(({ kind }) => kind === "Pod").length;
}
