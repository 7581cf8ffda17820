/** Decides how hooks hold a pod of a set back: which state it is in, and which one comes next. */
import type { Pod } from "../../../api/kubernetes.ts";
import { LIFECYCLE_STATE_LABEL, LIFECYCLE_TIMESTAMP_ANNOTATION } from "../../../api/names.ts";
import type { LifecycleHook, StatefulSet } from "../../../api/stateful-set.ts";
import { whyNotCompleted } from "../in-place/update-completed.ts";
import { lifecycleState, revisionOf } from "./pod-phase.ts";

/** One of its labels or finalizers is there. */
export function isHooked(hook: LifecycleHook | undefined, { metadata }: Pod): boolean {
  const finalizers = metadata?.finalizers ?? [];
  return (
    (hook?.finalizersHandler ?? []).some((finalizer) => finalizers.includes(finalizer)) ||
    Object.entries(hook?.labelsHandler ?? {}).some(([key, value]) => (metadata?.labels?.[key] ?? "") === value)
  );
}

/** All of them are there. False without a hook. */
function isFullyHooked(hook: LifecycleHook | undefined, { metadata }: Pod): boolean {
  if (!hook) return false;
  const finalizers = metadata?.finalizers ?? [];
  return (
    (hook.finalizersHandler ?? []).every((finalizer) => finalizers.includes(finalizer)) &&
    Object.entries(hook.labelsHandler ?? {}).every(([key, value]) => (metadata?.labels?.[key] ?? "") === value)
  );
}

export function withLifecycleState(pod: Pod, state: string, now: string): Pod {
  const labels = { ...pod.metadata?.labels, [LIFECYCLE_STATE_LABEL]: state };
  const annotations = { ...pod.metadata?.annotations, [LIFECYCLE_TIMESTAMP_ANNOTATION]: now };
  return { ...pod, metadata: { ...pod.metadata, labels, annotations } };
}

/** With everything by which the hook holds a pod. */
export function withHook(pod: Pod, { labelsHandler, finalizersHandler = [] }: LifecycleHook): Pod {
  const before = pod.metadata?.finalizers ?? [];
  const finalizers = [...before, ...finalizersHandler.filter((finalizer) => !before.includes(finalizer))];
  const labels = { ...pod.metadata?.labels, ...labelsHandler };
  return { ...pod, metadata: { ...pod.metadata, labels, ...(finalizers.length > 0 ? { finalizers } : {}) } };
}

export function firstState({ spec }: StatefulSet, pod: Pod): string {
  const hook = spec.lifecycle?.preNormal;
  return !hook || isFullyHooked(hook, pod) ? "Normal" : "PreparingNormal";
}

/** Undefined while the pod stays in the state it is in. */
export function nextState(set: StatefulSet, pod: Pod, updateRevision: string): string | undefined {
  const hook = set.spec.lifecycle?.inPlaceUpdate;
  switch (lifecycleState(pod)) {
    case "PreparingNormal":
      return unless(firstState(set, pod) !== "Normal", "Normal");
    case "PreparingUpdate":
      // A pod that waits for an update and was rolled back meanwhile has nothing to wait for.
      return unless(revisionOf(pod) !== updateRevision, stateAfterUpdate(set, pod));
    case "Updating":
      return unless(whyNotCompleted(pod) !== undefined, stateAfterUpdate(set, pod));
    case "Updated":
      return unless(hook !== undefined && !isFullyHooked(hook, pod), "Normal");
    default:
      return undefined;
  }
}

function unless(mustWait: boolean, state: string): string | undefined {
  return mustWait ? undefined : state;
}

/** Compat: a lifecycle without this hook counts as one that is not satisfied (statefulset.md, section 7). */
function stateAfterUpdate({ spec: { lifecycle } }: StatefulSet, pod: Pod): "Updated" | "Normal" {
  return lifecycle && !isFullyHooked(lifecycle.inPlaceUpdate, pod) ? "Updated" : "Normal";
}
