/** Decides the next step of an update in place that is under way, and of the hooks around it. */
import type { Pod } from "../../../api/kubernetes.ts";
import { POD_REVISION_LABEL } from "../../../api/names.ts";
import { type InPlaceContext, type InPlaceStep, refreshPod as refreshInPlace } from "../in-place/update-pod.ts";
import { readGrace } from "../in-place/update-spec.ts";
import type { Pass } from "../pass.ts";
import { getPod, StepFailed, type Steps } from "../step.ts";
import { changeState, writePod } from "./change-state.ts";
import { nextState } from "./lifecycle.ts";
import { isGoneAtOnce, lifecycleState } from "./pod-phase.ts";

/** True if the pod went on to another lifecycle state. */
export function* refresh(pass: Pass, pod: Pod): Steps<boolean> {
  const { set, update } = pass;
  const stored = yield* carryOut(pass, pod, refreshInPlace(pod, contextOf(pass)));
  const state = nextState(set, pod, update.metadata?.name ?? "");
  if (state === undefined) return false;
  yield* changeState(pass, stored, state);
  return true;
}

/**
 * What is due of a pod as it was listed, though it was written since: "inPlace" for its condition or a further batch,
 * which are not written twice. The end of a grace and another state are written to the pod as it is stored.
 * Compat: nobody finds one that went at once when it was deleted, and that ends the pass (OpenKruise refreshPodState).
 */
export function* refreshWritten(pass: Pass, pod: Pod): Steps<"inPlace" | "state" | undefined> {
  const { name = "", uid = "" } = pod.metadata ?? {};
  if (isInGrace(pod)) yield* endGrace(pass, yield* getPod(name));
  else if (isInPlaceDue(pass, pod)) {
    if (pass.progress.deleted.has(uid) && isGoneAtOnce(pod)) yield* getPod(name);
    return "inPlace";
  }
  const state = nextState(pass.set, pod, pass.update.metadata?.name ?? "");
  if (state === undefined) return undefined;
  const stored = yield* getPod(name);
  if (lifecycleState(stored) !== state) yield* changeState(pass, stored, state);
  return "state";
}

function isInGrace(pod: Pod): boolean {
  return readGrace(pod).kind !== "absent";
}

function* endGrace(pass: Pass, stored: Pod): Steps<void> {
  if (isInGrace(stored)) yield* carryOut(pass, stored, refreshInPlace(stored, contextOf(pass)));
}

function isInPlaceDue(pass: Pass, pod: Pod): boolean {
  const step = refreshInPlace(pod, contextOf(pass));
  return step.kind !== "step" || step.pod !== pod;
}

/** Nothing of ours runs on nodes. */
export function contextOf({ now }: Pass): InPlaceContext {
  return { now, revisionLabel: POD_REVISION_LABEL, restartsByAlias: true };
}

/** The pod as it is stored then. Throws for annotations that cannot be read. */
export function* carryOut(pass: Pass, pod: Pod, step: InPlaceStep): Steps<Pod> {
  if (step.kind === "refused") throw new StepFailed(step.message, "Invalid");
  if (step.kind === "notInPlace") throw new StepFailed(`only a new pod gets there${step.why ? `: ${step.why}` : ""}`);
  const stored = yield* writePod(pass, pod, step.pod);
  if (step.delaySeconds > 0) pass.progress.waits.push(step.delaySeconds);
  return stored;
}
