/** The phase of one pod of a set: created, ready, held by a hook, available, or terminating. */

import type { Pod } from "../../../api/kubernetes.ts";
import {
  IN_PLACE_READY_CONDITION,
  LIFECYCLE_STATE_LABEL,
  LIFECYCLE_TIMESTAMP_ANNOTATION,
  POD_READY_CONDITION,
  POD_REVISION_LABEL,
} from "../../../api/names.ts";
import type { LifecycleHook, StatefulSet } from "../../../api/stateful-set.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { conditionOf, setCondition } from "../../pod/is-ready.ts";
import { whyNotCompleted } from "../in-place/update-completed.ts";

/** The revision that the pod was created from, or updated to. */
export function revisionOf({ metadata }: Pod): string {
  return metadata?.labels?.[POD_REVISION_LABEL] ?? "";
}

/**
 * Compat: only an update without order identifies a revision by the text after the last dash of its name (OpenKruise
 * IsPodUpdate).
 */
function hasRevisionHash(pod: Pod, revision: string): boolean {
  const hashOf = (name: string) => name.slice(name.lastIndexOf("-") + 1);
  return hashOf(revisionOf(pod)) === hashOf(revision);
}

/**
 * True if the pod counts as updated, for an update without order and for the revision of new pods. With
 * `isPreparingUpdated` also for a pod with a pending hook (OpenKruise's gate PreparingUpdateAsUpdate).
 */
export function isTakenAsUpdated(pod: Pod, revision: string, isPreparingUpdated: boolean): boolean {
  return (isPreparingUpdated && lifecycleState(pod) === "PreparingUpdate") || hasRevisionHash(pod, revision);
}

export function lifecycleState({ metadata }: Pod): string {
  return metadata?.labels?.[LIFECYCLE_STATE_LABEL] ?? "";
}

export function isCreated({ status }: Pod): boolean {
  return (status?.phase ?? "") !== "";
}

export function isPending({ status }: Pod): boolean {
  return status?.phase === "Pending";
}

export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Failed" || status?.phase === "Succeeded";
}

export function isTerminating({ metadata }: Pod): boolean {
  return Boolean(metadata?.deletionTimestamp);
}

/** True for a pod that a deletion removes at once, because no node has to stop it first. */
export function isGoneAtOnce(pod: Pod): boolean {
  const isHeld = (pod.metadata?.finalizers ?? []).length > 0;
  return !isHeld && (!pod.spec.nodeName || isFinished(pod));
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && conditionOf(pod, "Ready")?.status === "True";
}

export function isHealthy(pod: Pod): boolean {
  return isNeutral(pod) && isRunningAndReady(pod) && !isTerminating(pod);
}

/**
 * Seconds until the pod has been ready for long enough; 0: it has; undefined: time alone will not help. Compat: a
 * terminating pod may be available (statefulset.md, section 0).
 */
export function secondsUntilAvailable(pod: Pod, minReadySeconds: number, now: string): number | undefined {
  if (!isNeutral(pod) || !isRunningAndReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  const since = conditionOf(pod, "Ready")?.lastTransitionTime;
  const ready = since ? secondsBetween(since, now) : 0;
  return Math.max(0, minReadySeconds - (ready ?? 0));
}

/** True if no hook works on the pod. */
function isNeutral(pod: Pod): boolean {
  const state = lifecycleState(pod);
  return state === "" || state === "Normal";
}

// How hooks hold back a pod of a set: the pod's state, and the next one.

/** True if one of the hook's labels or finalizers is present. */
export function isHooked(hook: LifecycleHook | undefined, { metadata }: Pod): boolean {
  const finalizers = metadata?.finalizers ?? [];
  return (
    (hook?.finalizersHandler ?? []).some((finalizer) => finalizers.includes(finalizer)) ||
    Object.entries(hook?.labelsHandler ?? {}).some(([key, value]) => (metadata?.labels?.[key] ?? "") === value)
  );
}

/** True if all labels and finalizers are present; false without a hook. */
function isFullyHooked(hook: LifecycleHook | undefined, { metadata }: Pod): boolean {
  if (!hook) return false;
  const finalizers = metadata?.finalizers ?? [];
  return (
    (hook.finalizersHandler ?? []).every((finalizer) => finalizers.includes(finalizer)) &&
    Object.entries(hook.labelsHandler ?? {}).every(([key, value]) => (metadata?.labels?.[key] ?? "") === value)
  );
}

export function withLifecycleState(pod: Pod, state: string, now: string): Pod {
  const labels = { ...pod.metadata?.labels, [LIFECYCLE_STATE_LABEL]: state };
  const annotations = { ...pod.metadata?.annotations, [LIFECYCLE_TIMESTAMP_ANNOTATION]: now };
  return { ...pod, metadata: { ...pod.metadata, labels, annotations } };
}

/** Adds every label and finalizer of the hook to a pod. */
export function withHook(pod: Pod, { labelsHandler, finalizersHandler = [] }: LifecycleHook): Pod {
  const before = pod.metadata?.finalizers ?? [];
  const finalizers = [...before, ...finalizersHandler.filter((finalizer) => !before.includes(finalizer))];
  const labels = { ...pod.metadata?.labels, ...labelsHandler };
  return { ...pod, metadata: { ...pod.metadata, labels, ...(finalizers.length > 0 ? { finalizers } : {}) } };
}

export function firstState({ spec }: StatefulSet, pod: Pod): string {
  const hook = spec.lifecycle?.preNormal;
  return !hook || isFullyHooked(hook, pod) ? "Normal" : "PreparingNormal";
}

/** The next state; undefined while the pod stays in its state. */
export function nextState(set: StatefulSet, pod: Pod, updateRevision: string): string | undefined {
  const hook = set.spec.lifecycle?.inPlaceUpdate;
  switch (lifecycleState(pod)) {
    case "PreparingNormal":
      return unless(firstState(set, pod) !== "Normal", "Normal");
    case "PreparingUpdate":
      // A pod that waits for an update and was rolled back has nothing to wait for.
      return unless(revisionOf(pod) !== updateRevision, stateAfterUpdate(set, pod));
    case "Updating":
      return unless(whyNotCompleted(pod) !== undefined, stateAfterUpdate(set, pod));
    case "Updated":
      return unless(hook !== undefined && !isFullyHooked(hook, pod), "Normal");
    default:
      return undefined;
  }
}

function unless(mustWait: boolean, state: string): string | undefined {
  return mustWait ? undefined : state;
}

/** Compat: a lifecycle without this hook counts as one that is not satisfied (statefulset.md, section 7). */
function stateAfterUpdate({ spec: { lifecycle } }: StatefulSet, pod: Pod): "Updated" | "Normal" {
  return lifecycle && !isFullyHooked(lifecycle.inPlaceUpdate, pod) ? "Updated" : "Normal";
}

// Finds the pods of a set that get the condition which the pod webhook made them wait for.

function hasGate({ spec }: Pod, type: string): boolean {
  return (spec.readinessGates ?? []).some(({ conditionType }) => conditionType === type);
}

/** The same pod if no gate has to open. Source: OpenKruise pkg/controller/podreadiness. */
export function withOpenGate(pod: Pod, now: string): Pod {
  if (!hasGate(pod, POD_READY_CONDITION) || isTerminating(pod)) return pod;
  if (conditionOf(pod, POD_READY_CONDITION)) return pod;
  return setCondition(pod, { type: POD_READY_CONDITION, status: "True", lastTransitionTime: now });
}

/** True if a gate is closed that only a pass opens. */
export function waitsForPass(pod: Pod): boolean {
  const isClosed =
    hasGate(pod, IN_PLACE_READY_CONDITION) && conditionOf(pod, IN_PLACE_READY_CONDITION)?.status !== "True";
  return isClosed || withOpenGate(pod, "") !== pod;
}
