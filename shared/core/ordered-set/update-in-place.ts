/** Decides whether a pod of a set is updated in place, and how far its hooks let that go now. */
import type { ControllerRevision, Pod } from "../../api/kubernetes.ts";
import { POD_REVISION_LABEL } from "../../api/names.ts";
import { type CalculateOptions, calculateSpec } from "../in-place/calculate-spec.ts";
import { updatePod } from "../in-place/update-pod.ts";
import { asStored, changeState } from "./change-state.ts";
import { isHooked, withLifecycleState } from "./lifecycle.ts";
import type { Pass } from "./pass.ts";
import { lifecycleState, revisionOf } from "./pod-phase.ts";
import { carryOut } from "./refresh.ts";
import { attempt, getPod, StepFailed, type Steps } from "./step.ts";
import { record } from "./write-pod.ts";

/** False when only a new pod gets there. Throws where the policy wants no new pod, or the pod is on its way out. */
export function* updateInPlace(pass: Pass, pod: Pod): Steps<boolean> {
  const { set, history, update, gates } = pass;
  const rolling = set.spec.updateStrategy?.rollingUpdate;
  const policy = rolling?.podUpdatePolicy;
  if (policy !== "InPlaceIfPossible" && policy !== "InPlaceOnly") return false;
  const before = history.find(({ metadata }) => metadata?.name === revisionOf(pod));
  const options = {
    gracePeriodSeconds: rolling?.inPlaceUpdateStrategy?.gracePeriodSeconds ?? 0,
    isEnvFromMetadataUpdated: gates.InPlaceUpdateEnvFromMetadata,
    isVerticalScalingAllowed: false,
  };
  if (!before || !calculateSpec(before, update, options)) {
    if (policy === "InPlaceIfPossible") return false;
    throw new StepFailed(`find strategy is InPlaceOnly but Pod ${pod.metadata?.name} can not update in-place`);
  }
  if (yield* mayBegin(pass, pod)) yield* begin(pass, pod, { before, options });
  return true;
}

interface Change {
  readonly before: ControllerRevision;
  readonly options: CalculateOptions;
}

function* begin(pass: Pass, pod: Pod, change: Change): Steps<void> {
  const { update } = pass;
  const updated = yield* attempt(updateStored(pass, pod, change));
  const isFailed = updated instanceof StepFailed;
  const what = `update pod ${pod.metadata?.name} in-place(revision ${update.metadata?.name})`;
  yield* record(isFailed ? "Warning" : "Normal", isFailed ? "FailedUpdatePodInPlace" : "SuccessfulUpdatePodInPlace", {
    message: isFailed ? `failed to ${what}: ${updated.message}` : `successfully ${what}`,
  });
  if (isFailed) throw updated;
}

function* updateStored(pass: Pass, pod: Pod, { before, options }: Change) {
  const { update, now } = pass;
  const fresh = yield* getPod(pod.metadata?.name ?? "");
  const labelled = lifecycleState(pod) === "" ? fresh : withLifecycleState(fresh, "Updating", now);
  const step = updatePod(labelled, { before, after: update }, options, { now, revisionLabel: POD_REVISION_LABEL });
  return yield* carryOut(pass, fresh, step);
}

/** Once no hook holds the pod. */
function* mayBegin(pass: Pass, pod: Pod): Steps<boolean> {
  const state = lifecycleState(pod);
  const hook = pass.set.spec.lifecycle?.inPlaceUpdate;
  switch (state) {
    case "":
    case "PreparingNormal":
    case "Normal":
      if (!isHooked(hook, pod)) return true;
      yield* changeState(pass, yield* asStored(pass, pod), "PreparingUpdate");
      return false;
    case "Updated":
      if (!hook) return true;
      yield* changeState(pass, yield* asStored(pass, pod), "PreparingUpdate", true);
      return false;
    case "PreparingUpdate":
      return !isHooked(hook, pod);
    case "Updating":
      return true;
    default:
      throw new StepFailed(`not allowed to in-place update pod ${pod.metadata?.name} in state ${state}`);
  }
}
