/** Decides the next step of an update in place that is under way, and of the hooks around it. */
import type { Pod } from "../../api/kubernetes.ts";
import { POD_REVISION_LABEL } from "../../api/names.ts";
import { type InPlaceContext, type InPlaceStep, refreshPod as refreshInPlace } from "../in-place/update-pod.ts";
import { nextState, withLifecycleState } from "./lifecycle.ts";
import type { Pass } from "./pass.ts";
import { ask, StepFailed, type Steps } from "./step.ts";

/** True if the pod went on to another lifecycle state. */
export function* refresh(pass: Pass, pod: Pod): Steps<boolean> {
  const { set, update, now } = pass;
  const stored = yield* carryOut(pass, pod, refreshInPlace(pod, contextOf(pass)));
  const state = nextState(set, pod, update.metadata?.name ?? "");
  if (state === undefined) return false;
  yield* writePod(pass, stored, withLifecycleState(stored, state, now));
  return true;
}

/** The pod would be written. */
export function needsRefresh(pass: Pass, pod: Pod): boolean {
  const step = refreshInPlace(pod, contextOf(pass));
  const isSame = step.kind === "step" && step.pod === pod;
  return !isSame || nextState(pass.set, pod, pass.update.metadata?.name ?? "") !== undefined;
}

function contextOf({ now }: Pass): InPlaceContext {
  return { now, revisionLabel: POD_REVISION_LABEL };
}

/** The pod as it is stored then. Throws for annotations that cannot be read. */
export function* carryOut(pass: Pass, pod: Pod, step: InPlaceStep): Steps<Pod> {
  if (step.kind === "refused") throw new StepFailed(step.message, "Invalid");
  if (step.kind === "notInPlace") return pod;
  if (step.delaySeconds > 0) pass.progress.waits.push(step.delaySeconds);
  return yield* writePod(pass, pod, step.pod);
}

/** The status first: a pod must not look ready while it is updated. */
function* writePod({ progress }: Pass, before: Pod, after: Pod): Steps<Pod> {
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
