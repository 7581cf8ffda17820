/** The next step of an update in place, and of the hooks around it. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { POD_REVISION_LABEL } from "../../../api/names.ts";
import { aliasesFor, isRestartUnderWay } from "../in-place/apply-spec.ts";
import { type CalculateOptions, calculateSpec } from "../in-place/calculate-spec.ts";
import {
  type InPlaceContext,
  type InPlaceStep,
  refreshPod as refreshInPlace,
  updatePod,
} from "../in-place/update-pod.ts";
import { readGrace, type UpdateSpec } from "../in-place/update-spec.ts";
import type { Pass } from "../pass.ts";
import { attempt, getPod, StepFailed, type Steps } from "../step.ts";
import { asStored, changeState, writePod } from "./change-state.ts";
import { isGoneAtOnce, isHooked, lifecycleState, nextState, revisionOf, withLifecycleState } from "./pod-phase.ts";
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

/** The change, or the reason against it although the templates alone would allow it. */
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

/** True once no hook holds the pod. */
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

// The next step of a running update in place, and of the hooks around it.

/** True if the pod moved to another lifecycle state. */
export function* refresh(pass: Pass, pod: Pod): Steps<boolean> {
  const { set, update } = pass;
  const stored = yield* carryOut(pass, pod, refreshInPlace(pod, contextOf(pass)));
  const state = nextState(set, pod, update.metadata?.name ?? "");
  if (state === undefined) return false;
  yield* changeState(pass, stored, state);
  return true;
}

/**
 * The remaining work on a pod that was written since it was listed: "inPlace" for its condition or a further batch,
 * which are not written twice. The end of a grace period, and another state, go to the stored pod. Compat: a pod that a
 * deletion removed at once is not found, and that ends the pass (OpenKruise refreshPodState).
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

/** The context of an update in place without a daemon on nodes. */
function contextOf({ now }: Pass): InPlaceContext {
  return { now, revisionLabel: POD_REVISION_LABEL, restartsByAlias: true };
}

/** The pod as it is stored afterwards. Throws for annotations that cannot be read. */
function* carryOut(pass: Pass, pod: Pod, step: InPlaceStep): Steps<Pod> {
  if (step.kind === "refused") throw new StepFailed(step.message, "Invalid");
  if (step.kind === "notInPlace") throw new StepFailed(`only a new pod gets there${step.why ? `: ${step.why}` : ""}`);
  const stored = yield* writePod(pass, pod, step.pod);
  if (step.delaySeconds > 0) pass.progress.waits.push(step.delaySeconds);
  return stored;
}
