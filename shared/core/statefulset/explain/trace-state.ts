/** Decides how it is told that a pod of a set is not available, and what helps. */

import type { Pod } from "../../../api/kubernetes.ts";
import { note, stop, wait } from "../../inspect/explain/step.ts";
import { traceGeneration, traceTick } from "../../inspect/explain/trace-tick.ts";
import { commandText } from "../../pod/command-text.ts";
import { failureOf } from "../../pod/container-failure.ts";
import { whyNotCompleted } from "../in-place/update-completed.ts";
import { isFinished, isRunningAndReady, isTerminating, lifecycleState, revisionOf } from "../pods/pod-phase.ts";
import type { SetObservation } from "../reconcile.ts";
import { whyNotAvailable } from "./explain-set.ts";
import type { SetExplanationFacts, SetStep } from "./set-reasons.ts";

export function referenceTo({ set }: Pick<SetObservation, "set">): string {
  return `statefulset.apps.kruise.io/${set.metadata?.name}`;
}

export function isMonotonic({ set }: Pick<SetObservation, "set">): boolean {
  return set.spec.podManagementPolicy !== "Parallel";
}

/** Undefined: the pod is available. */
export function traceState(seen: SetObservation, pod: Pod, updateRevision: string | undefined): SetStep | undefined {
  const { set, now } = seen;
  const why = whyNotAvailable(pod, set.spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0, now);
  if (why === undefined) return undefined;
  const message = `${pod.metadata?.name} ${why}`;
  if (isTerminating(pod)) return traceTerminating(pod, message);
  if (isFinished(pod)) return wait("PodFinished", `${message}; such a pod is deleted and recreated`);
  const state = lifecycleState(pod);
  if (state !== "" && state !== "Normal")
    return stop("HeldByHook", message, "it goes on when the hook's label or finalizer is removed");
  if (whyNotCompleted(pod) !== undefined && !isBroken(pod)) return wait("InPlaceUnderWay", message);
  if (isRunningAndReady(pod)) return wait("NotReadyForLongEnough", `${message} (minReadySeconds)`);
  if (!isBroken(pod)) return wait("PodNotReady", message);
  return stop("ContainerFailing", message, remedy(seen, pod, updateRevision));
}

export function isBroken(pod: Pod): boolean {
  return failureOf(pod) !== undefined;
}

/** Where the order waits for the very pod that an update would fix, only a deletion helps. */
function remedy(seen: SetObservation, pod: Pod, updateRevision: string | undefined): string {
  const isNewest = revisionOf(pod) === updateRevision;
  const { namespace, name } = pod.metadata ?? {};
  const hasPrevious = seen.revisions.some(({ metadata }) => metadata?.name !== updateRevision);
  const fix = hasPrevious
    ? `${commandText`sidecarset undo ${referenceTo(seen)} -n ${namespace}`} or fix the template`
    : "fix the template";
  if (!isMonotonic(seen) || seen.gates.StatefulSetUnblocked)
    return isNewest ? fix : commandText`see what its containers say: kubectl describe pod -n ${namespace} ${name}`;
  const remove = commandText`kubectl -n ${namespace} delete pod ${name}`;
  const why = "a set that keeps order never updates a pod that is not ready";
  return isNewest ? `${fix}, then ${remove}: ${why}` : `${remove}: ${why}`;
}

function traceTerminating({ metadata }: Pod, message: string): SetStep {
  const finalizers = metadata?.finalizers ?? [];
  return finalizers.length === 0
    ? wait("PodTerminating", `${message}; its place is taken by a new one when it is gone`)
    : stop(
        "PodTerminating",
        `${message}, and kept by ${finalizers.join(", ")}`,
        "it goes when the finalizer is removed",
      );
}

/** Whether anybody is at work on the set. */
export function traceWork({ seen, lastPass }: SetExplanationFacts): readonly SetStep[] {
  const schedule = { lease: "sidecarset-ordered-sets", name: "the ordered-set function" };
  return [traceGeneration(seen.set) ?? [], traceTick(lastPass, seen.now, schedule)].flat();
}

/** The set itself goes. */
export function traceSetTerminating({ set }: SetObservation): readonly SetStep[] {
  if (!set.metadata?.deletionTimestamp) return [];
  return [note("SetTerminating", "the set is being deleted: nothing is created or updated any more")];
}
