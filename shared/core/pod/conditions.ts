/** Decides how the conditions of a pod change, and how Ready follows its readiness gates. */
import type { Pod, PodCondition } from "../../api/kubernetes.ts";

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

/** Ready as readiness gates leave it once every container is ready; untouched before. */
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
