/** The write when a pod of a set enters another lifecycle state, and whether its hook holds it unready. */
import type { Pod } from "../../../api/kubernetes.ts";
import { hasHoldGate, hold, release } from "../../pod/unready-hold.ts";
import type { Pass } from "../pass.ts";
import { ask, getPod, type Steps } from "../step.ts";
import { withHook, withLifecycleState } from "./pod-phase.ts";

/** The reference's names for holders of a pod. Source: OpenKruise pkg/util/lifecycle. */
const HOLDER = {
  preDelete: { userAgent: "Lifecycle", key: "preDeleteHook" },
  inPlaceUpdate: { userAgent: "Lifecycle", key: "preUpdateHook" },
} as const;

/** `isHookedAgain`: adds everything by which the update hook holds a pod. Returns the stored pod. */
export function* changeState(pass: Pass, pod: Pod, state: string, isHookedAgain = false): Steps<Pod> {
  const { set, now } = pass;
  const hook = set.spec.lifecycle?.inPlaceUpdate;
  const after = withLifecycleState(withReadiness(pass, pod, state), state, now);
  return yield* writePod(pass, pod, isHookedAgain && hook ? withHook(after, hook) : after);
}

/** The current pod if this pass has written to it, so that it does not conflict with itself; else the listed one. */
export function* asStored({ progress }: Pass, pod: Pod): Steps<Pod> {
  const { name = "", uid = "" } = pod.metadata ?? {};
  return progress.written.has(uid) ? yield* getPod(name) : pod;
}

/** Holds a pod again if its hook still protects it from deletion: another component may have made it ready. */
export function* holdBeforeDeletion(pass: Pass, pod: Pod): Steps<void> {
  yield* writePod(pass, pod, withReadiness(pass, pod, "PreparingDelete"));
}

/** Holds the pod unready while a hook works, if the hook asks for it. */
function withReadiness({ set, gates, now }: Pass, pod: Pod, state: string): Pod {
  const { preDelete, inPlaceUpdate } = set.spec.lifecycle ?? {};
  if (!hasHoldGate(pod)) return pod;
  if (state === "PreparingDelete") return preDelete?.markPodNotReady ? hold(pod, HOLDER.preDelete, now) : pod;
  if (!inPlaceUpdate?.markPodNotReady) return pod;
  if (state === "PreparingUpdate") return hold(pod, HOLDER.inPlaceUpdate, now);
  // Compat: a pod that is rolled back before its update began is held for ever (OpenKruise pkg/util/lifecycle).
  const isOver = state === "Updated" || (state === "Normal" && gates.StatefulSetUnblocked);
  return isOver ? release(pod, HOLDER.inPlaceUpdate, now) : pod;
}

/** Writes the status first, because a pod must not look ready during its update. */
export function* writePod({ progress }: Pass, before: Pod, after: Pod): Steps<Pod> {
  let stored = before;
  if (before.status !== after.status) {
    stored = (yield* ask({ kind: "UpdatePodStatus", before, after: { ...before, ...statusOf(after) } })) as Pod;
  }
  if (before.metadata !== after.metadata || before.spec !== after.spec) {
    const { resourceVersion } = stored.metadata ?? {};
    const metadata = { ...after.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    stored = (yield* ask({ kind: "UpdatePod", before: stored, after: { ...after, metadata } })) as Pod;
  }
  if (stored !== before) progress.written.add(before.metadata?.uid ?? "");
  return stored;
}

function statusOf({ status }: Pod): Pick<Pod, "status"> {
  return status === undefined ? {} : { status };
}
