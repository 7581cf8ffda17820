/** Decides the next step of an update in place that is under way, and of the hooks around it. */
import type { Pod } from "../../api/kubernetes.ts";
import { POD_REVISION_LABEL } from "../../api/names.ts";
import { type InPlaceContext, type InPlaceStep, refreshPod as refreshInPlace } from "../in-place/update-pod.ts";
import { changeState, writePod } from "./change-state.ts";
import { nextState } from "./lifecycle.ts";
import type { Pass } from "./pass.ts";
import { StepFailed, type Steps } from "./step.ts";

/** True if the pod went on to another lifecycle state. */
export function* refresh(pass: Pass, pod: Pod): Steps<boolean> {
  const { set, update } = pass;
  const stored = yield* carryOut(pass, pod, refreshInPlace(pod, contextOf(pass)));
  const state = nextState(set, pod, update.metadata?.name ?? "");
  if (state === undefined) return false;
  yield* changeState(pass, stored, state);
  return true;
}

/** What would be written: "inPlace" for an update in place that is under way, "state" for its hooks alone. */
export function refreshDue(pass: Pass, pod: Pod): "inPlace" | "state" | undefined {
  const step = refreshInPlace(pod, contextOf(pass));
  if (step.kind !== "step" || step.pod !== pod) return "inPlace";
  return nextState(pass.set, pod, pass.update.metadata?.name ?? "") === undefined ? undefined : "state";
}

function contextOf({ now }: Pass): InPlaceContext {
  return { now, revisionLabel: POD_REVISION_LABEL };
}

/** The pod as it is stored then. Throws for annotations that cannot be read. */
export function* carryOut(pass: Pass, pod: Pod, step: InPlaceStep): Steps<Pod> {
  if (step.kind === "refused") throw new StepFailed(step.message, "Invalid");
  if (step.kind === "notInPlace") return pod;
  const stored = yield* writePod(pass, pod, step.pod);
  if (step.delaySeconds > 0) pass.progress.waits.push(step.delaySeconds);
  return stored;
}
