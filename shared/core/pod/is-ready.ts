/** Tells whether a pod is ready, in the two senses that a rollout uses. */
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION, POD_READY_CONDITION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { shortText, visibleLine } from "../../go/unseen.ts";
import { isHotUpgrade, slotsOf } from "./sidecar-containers.ts";

export function readyCondition(pod: Pod): PodCondition | undefined {
  return pod.status?.conditions?.find(({ type }) => type === "Ready");
}

const MOST_LETTERS = 160;

/** Why a pod is not ready, to complete "the pod is …": its scheduling gates and conditions, in words. */
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

/** The scheduler could not place the pod, or its scheduling gates keep it from trying. */
export function isUnscheduled({ type, status }: PodCondition): boolean {
  return type === "PodScheduled" && status === "False";
}

export function isPodReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

/** Running, Ready and not being deleted. */
export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && isPodReady(pod) && !pod.metadata?.deletionTimestamp;
}

/** True for a running and ready pod without a hot upgrade: every idle slot holds its empty image. */
export function isReady(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isRunningAndReady(pod) && !isHotUpgrading(pod, sidecarSet);
}

/** True while a slot that does not work holds another image than the empty one. */
function isHotUpgrading(pod: Pod, sidecarSet: SidecarSet): boolean {
  return (sidecarSet.spec.containers ?? []).some((sidecar) => {
    if (!isHotUpgrade(sidecar)) return false;
    const emptyImage = sidecar.upgradeStrategy?.hotUpgradeEmptyImage;
    const { other } = slotsOf(pod, sidecar.name);
    const container = pod.spec.containers.find(({ name }) => name === other);
    return container !== undefined && Boolean(emptyImage) && container.image !== emptyImage;
  });
}

// How the conditions of a pod change, and how Ready follows its readiness gates.

/** A condition that has the status already stays as it is. */
export function setCondition(pod: Pod, condition: PodCondition): Pod {
  const conditions = pod.status?.conditions ?? [];
  const before = conditionOf(pod, condition.type);
  if (before?.status === condition.status) return pod;
  const after = before
    ? conditions.map((candidate) => (candidate === before ? condition : candidate))
    : [...conditions, condition];
  return { ...pod, status: { ...pod.status, conditions: after } };
}

/** Sets Ready by the readiness gates once every container is ready; unchanged before. */
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
