/** Decides which pods out of range go, and when: from the highest ordinal down, or all at once. */
import type { Pod } from "../../api/kubernetes.ts";
import { ordinalOf } from "../pod/pod-name.ts";
import { areClaimsRetained, retainClaims } from "./claims/retention.ts";
import type { Pass } from "./pass.ts";
import { isFinished, isHealthy, isRunningAndReady, isTerminating, secondsUntilAvailable } from "./pods/pod-phase.ts";
import { refresh } from "./pods/refresh.ts";
import { deletePod } from "./pods/write-pod.ts";
import { attempt, StepFailed, type Steps, throwFailures } from "./step.ts";

/** Pods of one batch are not held up by each other's failures. */
const LARGEST_BATCH = 500;

/** False when the pass ends here. */
export function* removeCondemned(pass: Pass): Steps<boolean> {
  if (pass.gates.StatefulSetAutoDeletePVC) yield* forEach(pass, (pod) => giveClaims(pass, pod));
  const unhealthy = firstUnhealthy(pass);
  return yield* forEach(pass, (pod) => remove(pass, pod, unhealthy));
}

/** Of all pods, those that are still to be made too: the one with the lowest ordinal. */
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

/** Until one says that the pass ends. */
function* inOrder({ condemned }: Pass, work: Work): Steps<boolean> {
  for (const pod of condemned) if (!(yield* work(pod))) return false;
  return true;
}

/** Of 1, 2, 4, … pods, until there is a failure in one. */
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

/** False when a set that keeps order does no more in this pass. */
function* remove(pass: Pass, pod: Pod, unhealthy: Pod | undefined): Steps<boolean> {
  const { isMonotonic, minReadySeconds, now } = pass;
  if (isTerminating(pod)) return !isMonotonic;
  const isSettled = isRunningAndReady(pod) && secondsUntilAvailable(pod, minReadySeconds, now) === 0;
  const { StatefulSetUnblocked: isUnblocked } = pass.gates;
  if (isMonotonic && !isSettled && pod !== unhealthy && !(isUnblocked && isFinished(pod))) {
    // Compat: nobody else opens its gate, and without that it is never ready (statefulset.md, section 3.g).
    if (isUnblocked) yield* refresh(pass, pod);
    return false;
  }
  // Compat: past a pod that a hook keeps, the next one goes (statefulset.md, section 3.g).
  return (yield* deletePod(pass, pod)) === "kept" || !isMonotonic;
}
