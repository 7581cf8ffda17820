/** Decides how the readiness gate of in-place updates and the pod's Ready condition follow each other. */
import type { ContainerDetails } from "../../../api/container.ts";
import type { Pod } from "../../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION } from "../../../api/names.ts";
import { setCondition, setReady } from "../../pod/conditions.ts";
import type { UpdateSpec } from "./update-spec.ts";

export function hasReadinessGate({ spec }: Pod): boolean {
  return (spec.readinessGates ?? []).some(({ conditionType }) => conditionType === IN_PLACE_READY_CONDITION);
}

/** A pod is not ready meanwhile, unless nothing but resources changes and no container of it restarts for them. */
export function closesGate(pod: Pod, { verticalUpdateOnly, containerResources }: UpdateSpec): boolean {
  return hasReadinessGate(pod) && (!verticalUpdateOnly || restartsForResources(pod, containerResources));
}

function restartsForResources({ spec }: Pod, resources: UpdateSpec["containerResources"]): boolean {
  return (spec.containers as readonly ContainerDetails[]).some(({ name, resizePolicy = [] }) => {
    const { limits = {}, requests = {} } = resources[name] ?? {};
    const changed = [...Object.keys(limits), ...Object.keys(requests)];
    return resizePolicy.some(
      ({ resourceName = "", restartPolicy }) => restartPolicy === "RestartContainer" && changed.includes(resourceName),
    );
  });
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
