/** Decides whether a pod of a set is updated in place, and how far its hooks let that go now. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { type CalculateOptions, calculateSpec } from "../in-place/calculate-spec.ts";
import { aliasesFor, isRestartUnderWay } from "../in-place/restart-by-alias.ts";
import { updatePod } from "../in-place/update-pod.ts";
import type { UpdateSpec } from "../in-place/update-spec.ts";
import type { Pass } from "../pass.ts";
import { attempt, getPod, StepFailed, type Steps } from "../step.ts";
import { asStored, changeState } from "./change-state.ts";
import { isHooked, withLifecycleState } from "./lifecycle.ts";
import { lifecycleState, revisionOf } from "./pod-phase.ts";
import { carryOut, contextOf } from "./refresh.ts";
import { record } from "./write-pod.ts";

/** False when only a new pod gets there. Throws where the policy wants no new pod, or the pod is on its way out. */
export function* updateInPlace(pass: Pass, pod: Pod): Steps<boolean> {
  const policy = pass.set.spec.updateStrategy?.rollingUpdate?.podUpdatePolicy;
  if (policy !== "InPlaceIfPossible" && policy !== "InPlaceOnly") return false;
  const change = changeOf(pass, pod);
  if (change.kind === "none") {
    if (policy === "InPlaceIfPossible") return false;
    const why = change.why === undefined ? "" : `: ${change.why}`;
    throw new StepFailed(`find strategy is InPlaceOnly but Pod ${pod.metadata?.name} can not update in-place${why}`);
  }
  if (isRestartUnderWay(pod, change.spec)) return true;
  if (yield* mayBegin(pass, pod)) yield* begin(pass, pod, change);
  return true;
}

interface Change {
  readonly kind: "change";
  readonly before: ControllerRevision;
  readonly options: CalculateOptions;
  readonly spec: UpdateSpec;
}

/** `why` where the templates alone would allow it. */
function changeOf(pass: Pass, pod: Pod): Change | { readonly kind: "none"; readonly why?: string } {
  const { set, history, update, gates } = pass;
  const before = history.find(({ metadata }) => metadata?.name === revisionOf(pod));
  const options = {
    gracePeriodSeconds: set.spec.updateStrategy?.rollingUpdate?.inPlaceUpdateStrategy?.gracePeriodSeconds ?? 0,
    isEnvFromMetadataUpdated: gates.InPlaceUpdateEnvFromMetadata,
    isVerticalScalingAllowed: false,
  };
  const spec = before && calculateSpec(before, update, options);
  if (!before || !spec) return { kind: "none" };
  const aliases = aliasesFor(pod, spec);
  return aliases?.kind === "none" ? aliases : { kind: "change", before, options, spec };
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
  const step = updatePod(labelled, { before, after: update }, options, contextOf(pass));
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
