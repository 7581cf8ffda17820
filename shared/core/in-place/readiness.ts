/** Decides how the readiness gate of in-place updates and the pod's Ready condition follow each other. */
import type { Pod } from "../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION } from "../../api/names.ts";
import { setCondition, setReady } from "../pod/conditions.ts";

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
