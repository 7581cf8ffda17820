/** Decides which pods of a set are given the condition that the pod webhook has them wait for: nothing holds them back. */
import type { Pod } from "../../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION, POD_READY_CONDITION } from "../../../api/names.ts";
import { conditionOf, setCondition } from "../../pod/conditions.ts";
import { isTerminating } from "./pod-phase.ts";

function hasGate({ spec }: Pod, type: string): boolean {
  return (spec.readinessGates ?? []).some(({ conditionType }) => conditionType === type);
}

/** The same pod where there is nothing to open. Source: OpenKruise pkg/controller/podreadiness. */
export function withOpenGate(pod: Pod, now: string): Pod {
  if (!hasGate(pod, POD_READY_CONDITION) || isTerminating(pod)) return pod;
  if (conditionOf(pod, POD_READY_CONDITION)) return pod;
  return setCondition(pod, { type: POD_READY_CONDITION, status: "True", lastTransitionTime: now });
}

/** A gate is closed that only a pass opens. */
export function waitsForPass(pod: Pod): boolean {
  const isClosed =
    hasGate(pod, IN_PLACE_READY_CONDITION) && conditionOf(pod, IN_PLACE_READY_CONDITION)?.status !== "True";
  return isClosed || withOpenGate(pod, "") !== pod;
}
