/** Decides where one pod of a set stands: created, ready, healthy, available, or on its way out. */
import type { Pod } from "../../../api/kubernetes.ts";
import { LIFECYCLE_STATE_LABEL, POD_REVISION_LABEL } from "../../../api/names.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { conditionOf } from "../../pod/conditions.ts";

/** Of the revision that the pod was made from, or updated to. */
export function revisionOf({ metadata }: Pod): string {
  return metadata?.labels?.[POD_REVISION_LABEL] ?? "";
}

/**
 * Compat: an update without order, and no other, knows a revision by what follows the last dash of its name (OpenKruise
 * IsPodUpdate).
 */
function hasRevisionHash(pod: Pod, revision: string): boolean {
  const hashOf = (name: string) => name.slice(name.lastIndexOf("-") + 1);
  return hashOf(revisionOf(pod)) === hashOf(revision);
}

/**
 * In an update without order, and for the revision of new pods beside one. With `isPreparingUpdated` also a pod whose
 * hook is being waited for (OpenKruise's gate PreparingUpdateAsUpdate).
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

/** Once it is deleted: there is no node that has to stop it first. */
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
 * Seconds until the pod has been ready for long enough: 0 when it has, undefined when time alone will not help.
 * Compat: a terminating pod may be available (statefulset.md, section 0).
 */
export function secondsUntilAvailable(pod: Pod, minReadySeconds: number, now: string): number | undefined {
  if (!isNeutral(pod) || !isRunningAndReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  const since = conditionOf(pod, "Ready")?.lastTransitionTime;
  const ready = since ? secondsBetween(since, now) : 0;
  return Math.max(0, minReadySeconds - (ready ?? 0));
}

/** No hook is at work on it. */
function isNeutral(pod: Pod): boolean {
  const state = lifecycleState(pod);
  return state === "" || state === "Normal";
}
