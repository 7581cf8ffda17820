/** Finds whether a pod is ready, in the two senses that a rollout uses. */
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  IN_PLACE_READY_CONDITION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  POD_READY_CONDITION,
} from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { shortText, visibleLine } from "../../go/unseen.ts";
import { parseUpgradeRecords } from "./pod-records.ts";
import { isHotUpgrade, slotsOf } from "./sidecar-containers.ts";
import { steeringOf } from "./steering/steering.ts";

export function readyCondition(pod: Pod): PodCondition | undefined {
  return pod.status?.conditions?.find(({ type }) => type === "Ready");
}

const MOST_LETTERS = 160;

/** The reason why a pod is not ready, which completes "the pod is …": its scheduling gates and conditions, in words. */
export function notReadyText(pod: Pod): string {
  const { reason: why } = pod.status?.conditions?.find(isUnscheduled) ?? {};
  const gates = gatesOf(pod);
  if (gates.length > 0) return `not scheduled (${[why || "SchedulingGated", gates.join(", ")].join(": ")})`;
  if (isPodUnscheduled(pod)) return `not scheduled (${why || "no reason is given"})`;
  const { status, reason, message = "" } = readyCondition(pod) ?? {};
  const words = [reason, shortText(visibleLine(message), MOST_LETTERS)].filter(Boolean).join(": ");
  return status === "True" || words === "" ? "not ready" : `not ready (${words})`;
}

/** True if the scheduler, or a readiness gate that no pass opens, keeps the pod unready, rather than a container. */
export function isHeldElsewhere(pod: Pod): boolean {
  if (isPodUnscheduled(pod)) return true;
  const isOurs = ({ type, status }: PodCondition) => OUR_GATES.has(type) && status === "False";
  return readyCondition(pod)?.reason === "ReadinessGatesNotReady" && !pod.status?.conditions?.some(isOurs);
}

const OUR_GATES: ReadonlySet<string> = new Set([IN_PLACE_READY_CONDITION, POD_READY_CONDITION]);

export function isPodUnscheduled(pod: Pod): boolean {
  return gatesOf(pod).length > 0 || pod.status?.conditions?.some(isUnscheduled) === true;
}

function gatesOf({ spec }: Pod): readonly string[] {
  return (spec.schedulingGates ?? []).map(({ name }) => name);
}

/** True if the scheduler could not place the pod, or if scheduling gates keep the scheduler from trying. */
export function isUnscheduled({ type, status }: PodCondition): boolean {
  return type === "PodScheduled" && status === "False";
}

export function isPodReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

/** True for a pod that runs, is Ready and is not being deleted. */
export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && isPodReady(pod) && !pod.metadata?.deletionTimestamp;
}

/** True for a running and ready pod without a running hot upgrade: every idle slot holds its empty image. */
export function isReady(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isRunningAndReady(pod) && !isHotUpgrading(pod, sidecarSet);
}

/** True while an idle slot holds an image that is not the empty one. */
function isHotUpgrading(pod: Pod, sidecarSet: SidecarSet): boolean {
  return (sidecarSet.spec.containers ?? []).some((sidecar) => {
    if (!isHotUpgrade(sidecar)) return false;
    const emptyImage = sidecar.upgradeStrategy?.hotUpgradeEmptyImage;
    const { other } = slotsOf(pod, sidecar.name);
    const container = pod.spec.containers.find(({ name }) => name === other);
    return container !== undefined && Boolean(emptyImage) && container.image !== emptyImage;
  });
}

// Changes the conditions of a pod. Ready follows the pod's readiness gates.

/** Sets a condition. If it has the status already, it stays as it is. */
export function setCondition(pod: Pod, condition: PodCondition): Pod {
  const conditions = pod.status?.conditions ?? [];
  const before = conditionOf(pod, condition.type);
  if (before?.status === condition.status) return pod;
  const after = before
    ? conditions.map((candidate) => (candidate === before ? condition : candidate))
    : [...conditions, condition];
  return { ...pod, status: { ...pod.status, conditions: after } };
}

/** Sets Ready by the readiness gates once every container is ready. Before, the pod stays unchanged. */
export function setReady(pod: Pod): Pod {
  if (!conditionOf(pod, "Ready") || conditionOf(pod, "ContainersReady")?.status !== "True") return pod;
  const messages = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const status = conditionOf(pod, conditionType)?.status;
    if (status === "True") return [];
    return status === undefined
      ? [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`]
      : [`the status of pod readiness gate "${conditionType}" is not "True", but ${status}`];
  });
  if (messages.length === 0) return setCondition(pod, { type: "Ready", status: "True" });
  const message = messages.join(", ");
  return setCondition(pod, { type: "Ready", status: "False", reason: "ReadinessGatesNotReady", message });
}

export function conditionOf(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

// Finds since when a pod has been down, from its own conditions: since its update, since before, or always.

/** Seconds by which the clocks of nodes and passes may differ. */
const SKEW_SECONDS = 60;
/** The time of the update to the latest sidecars, RFC3339; undefined: a pass never updated the pod. */
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

/** Seconds after a change for which a pass waits for a pod. Most pods are ready again sooner. */
const LATELY_SECONDS = 300;

/**
 * True if the pod was created, updated or deleted, or changed readiness, within this time. A future time is no change.
 * Only a future creation time counts: an API server wrote it, so the local clock is wrong.
 */
export function hasChangedLately(pod: Pod, sidecarSet: SidecarSet | undefined, now: string): boolean {
  const age = secondsBetween(pod.metadata?.creationTimestamp ?? "", now);
  if (age !== undefined && age < -SKEW_SECONDS) return true;
  // The deletionTimestamp is the time by which the pod will be gone, perhaps in an hour.
  const { deletionTimestamp } = pod.metadata ?? {};
  if (deletionTimestamp && !isLongPast(deletionTimestamp, now)) return true;
  const updatedAt = sidecarSet && updateTimeOf(pod, sidecarSet);
  const times = [pod.metadata?.creationTimestamp, updatedAt, readyCondition(pod)?.lastTransitionTime];
  return times.some((time) => isLately(time, now));
}

function isLongPast(time: string, now: string): boolean {
  return (secondsBetween(time, now) ?? 0) >= LATELY_SECONDS;
}

/** True for a time within the last minutes. `time`: RFC3339 */
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
  // No pod starts, becomes ready, is updated and becomes unready within one second.
  return secondsBetween(pod.status?.startTime ?? "", since) === 0;
}

/**
 * True when a pod that was never ready uses no budget: only if the SidecarSet's owner says so, unlike OpenKruise's
 * default. No rollout took it down, so none waits for it.
 */
export function isIgnored(pod: Pod, sidecarSet: SidecarSet): boolean {
  return steeringOf(sidecarSet).ignoresNeverReady && isNeverReady(pod, sidecarSet);
}
