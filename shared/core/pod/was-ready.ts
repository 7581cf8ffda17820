/** Since when a pod has been down, by its own conditions: since its update, since before, or always. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { readyCondition } from "./is-ready.ts";
import { parseUpgradeRecords } from "./pod-records.ts";
import { steeringOf } from "./steering/steering.ts";

/** Clocks of nodes and of passes may differ by so much. */
const SKEW_SECONDS = 60;
/** RFC3339: when it was given the latest sidecars; undefined: a pass never updated it. */
export function updateTimeOf({ metadata }: Pod, { metadata: set }: SidecarSet): string | undefined {
  const name = set?.name ?? "";
  const states = jsonObjectOf(metadata?.annotations?.[IN_PLACE_UPDATE_STATE_ANNOTATION]) ?? {};
  if (!(Object.hasOwn(states, name) && isJsonObject(states[name]))) return undefined;
  return parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]).records[name]?.updateTimestamp ?? undefined;
}

/** True when the pod was ready until its update and has been unready since. */
export function wasReadyAt(pod: Pod, updatedAt: string): boolean {
  const since = readyCondition(pod)?.lastTransitionTime;
  const later = since ? secondsBetween(updatedAt, since) : undefined;
  return later !== undefined && later >= -SKEW_SECONDS;
}

/** A pass waits for pods that changed within this time. Most pods are ready again sooner. */
const LATELY_SECONDS = 300;

/**
 * True if the pod was created, updated, deleted, or changed readiness lately. A future time is no change, except the
 * creation time. An API server writes that, so the local clock is wrong and no age is known.
 */
export function hasChangedLately(pod: Pod, sidecarSet: SidecarSet | undefined, now: string): boolean {
  const age = secondsBetween(pod.metadata?.creationTimestamp ?? "", now);
  if (age !== undefined && age < -SKEW_SECONDS) return true;
  // The deletionTimestamp is the time when the pod should be gone, perhaps in an hour.
  const { deletionTimestamp } = pod.metadata ?? {};
  if (deletionTimestamp && !isLongPast(deletionTimestamp, now)) return true;
  const updatedAt = sidecarSet && updateTimeOf(pod, sidecarSet);
  const times = [pod.metadata?.creationTimestamp, updatedAt, readyCondition(pod)?.lastTransitionTime];
  return times.some((time) => isLately(time, now));
}

function isLongPast(time: string, now: string): boolean {
  return (secondsBetween(time, now) ?? 0) >= LATELY_SECONDS;
}

/** `time`: RFC3339 */
export function isLately(time: string | null | undefined, now: string): boolean {
  const age = time ? secondsBetween(time, now) : undefined;
  return age !== undefined && age >= -SKEW_SECONDS && age < LATELY_SECONDS;
}

/**
 * True when the pod is not ready and no condition shows that it was, since its start or its update. Missing information
 * counts as having been ready. A kubelet writes the first conditions together with startTime.
 */
export function isNeverReady(pod: Pod, sidecarSet: SidecarSet): boolean {
  const ready = readyCondition(pod);
  if (ready === undefined) return true;
  const since = ready.lastTransitionTime;
  if (ready.status === "True" || !since) return false;
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt !== undefined && !wasReadyAt(pod, updatedAt)) return true;
  // Nothing is started, ready, updated and not ready again within one second.
  return secondsBetween(pod.status?.startTime ?? "", since) === 0;
}

/**
 * True when a pod that was never ready uses no budget: only if the SidecarSet's owner says so, unlike OpenKruise's
 * default. No rollout took it down, so none waits for it.
 */
export function isIgnored(pod: Pod, sidecarSet: SidecarSet): boolean {
  return steeringOf(sidecarSet).ignoresNeverReady && isNeverReady(pod, sidecarSet);
}
