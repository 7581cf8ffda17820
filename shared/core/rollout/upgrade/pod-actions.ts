/** The actions on one pod of a rollout, and their records, as data. */
import type { Pod } from "../../../api/kubernetes.ts";
import { NOT_UPGRADABLE_EVENT, RESET_CONTAINER_SUCCEED_EVENT } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Action, PodPrecondition, PodPurpose } from "../../actions.ts";
import type { PodPlan } from "./pod-change.ts";

export function patchPod(pod: Pod, plan: PodPlan, purpose: PodPurpose, usesBudget: boolean): readonly Action[] {
  return plan.kind === "planned" ? [plannedPatch(pod, plan, purpose, usesBudget)] : [];
}

export function plannedPatch(
  pod: Pod,
  plan: Extract<PodPlan, { kind: "planned" }>,
  purpose: PodPurpose,
  usesBudget: boolean,
): Extract<Action, { kind: "PatchPod" }> {
  const { images, annotations, resources, labels, isAllowed } = plan;
  const isFirstAnnotation = pod.metadata?.annotations === undefined;
  return {
    kind: "PatchPod",
    purpose,
    pod: preconditionOf(pod),
    images,
    annotations,
    isFirstAnnotation,
    usesBudget,
    ...(resources ? { resources } : {}),
    ...(labels ? { labels } : {}),
    ...(isAllowed ? { isAllowed } : {}),
  };
}

export function preconditionOf({ metadata = {} }: Pod): PodPrecondition {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata;
  return { namespace, name, uid, resourceVersion };
}

export function flipEvent(pod: Pod): Action {
  const { namespace, name, uid } = preconditionOf(pod);
  return {
    kind: "RecordEvent",
    regarding: { kind: "Pod", namespace, name, uid },
    type: "Normal",
    reason: RESET_CONTAINER_SUCCEED_EVENT,
    message: "reset sidecar container image empty successfully",
  };
}

export function notUpgradableEvent({ metadata }: SidecarSet, count: number): readonly Action[] {
  if (count === 0) return [];
  return [
    {
      kind: "RecordEvent",
      regarding: { kind: "SidecarSet", name: metadata?.name ?? "", uid: metadata?.uid ?? "" },
      type: "Normal",
      reason: NOT_UPGRADABLE_EVENT,
      message: `SidecarSet in-place update detected ${count} not upgradable pod(s) in this round, will skip them.`,
    },
  ];
}
