/** Decides how the readiness gate of in-place updates and the pod's Ready condition follow each other. */
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION } from "../../api/names.ts";

export function hasReadinessGate({ spec }: Pod): boolean {
  return (spec.readinessGates ?? []).some(({ conditionType }) => conditionType === IN_PLACE_READY_CONDITION);
}

/** Closes the gate, and the pod's Ready with it: the kubelet would take its time. */
export function closeGate(pod: Pod, now: string): Pod {
  const type = IN_PLACE_READY_CONDITION;
  const closed = setCondition(pod, { type, status: "False", reason: "StartInPlaceUpdate", lastTransitionTime: now });
  return setReady(closed);
}

/** Opens the gate. Ready is left to the kubelet. */
export function openGate(pod: Pod, now: string): Pod {
  return setCondition(pod, { type: IN_PLACE_READY_CONDITION, status: "True", lastTransitionTime: now });
}

/** A condition that has the status already stays as it is. */
function setCondition(pod: Pod, condition: PodCondition): Pod {
  const conditions = pod.status?.conditions ?? [];
  const before = conditionOf(pod, condition.type);
  if (before?.status === condition.status) return pod;
  const after = before
    ? conditions.map((candidate) => (candidate === before ? condition : candidate))
    : [...conditions, condition];
  return { ...pod, status: { ...pod.status, conditions: after } };
}

function setReady(pod: Pod): Pod {
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

function conditionOf(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}
