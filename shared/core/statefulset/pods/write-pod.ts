/** Creates, deletes and repairs a pod of a set, and records Events about it. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { PersistentVolumeClaim } from "../../../api/stateful-set.ts";
import { ordinalOf } from "../../pod/workload.ts";
import { areClaimsRetained, claimsOf, hasClaimVolumes, retainClaims, withClaimVolumes } from "../claims/claims.ts";
import type { Pass } from "../pass.ts";
import { ask, attempt, findClaim, getPod, StepFailed, type Steps, throwFailures } from "../step.ts";
import { asStored, changeState, holdBeforeDeletion } from "./change-state.ts";
import { hasIdentity, withIdentity } from "./identity.ts";
import { firstState, isHooked, lifecycleState, withLifecycleState } from "./pod-phase.ts";

type Verb = "create" | "update" | "delete";

const PAST: Readonly<Record<Verb, string>> = { create: "Create", update: "Update", delete: "Delete" };

export function* createPod(pass: Pass, constructed: Pod): Steps<void> {
  const { set, now } = pass;
  const pod = withLifecycleState(constructed, firstState(set, constructed), now);
  const created = yield* attempt(storePod(pass, pod));
  if (created instanceof StepFailed) throw failPod(pass, "create", "FailedCreatePod", created);
}

function* storePod(pass: Pass, pod: Pod): Steps<void> {
  const claimed = yield* attempt(createMissingClaims(pass, pod));
  const stored = claimed instanceof StepFailed ? claimed : yield* attempt(ask({ kind: "CreatePod", pod }));
  // Another client created it, so there is no Event.
  if (stored instanceof StepFailed && stored.reason === "AlreadyExists") throw stored;
  if (!(claimed instanceof StepFailed)) yield* ownClaims(pass, pod);
  yield* recordPod(pass, "create", pod, stored);
  if (stored instanceof StepFailed) throw stored;
}

/** Gives the claims of a pod the owners that the policy requires. */
export function* ownClaims(pass: Pass, pod: Pod): Steps<void> {
  if (!pass.gates.StatefulSetAutoDeletePVC) return;
  const retained = yield* attempt(retainClaims(pass.updateSet, pod, pass.range));
  if (!(retained instanceof StepFailed)) return;
  yield* recordPod(pass, "update", pod, retained);
  throw retained;
}

/** Sets a condition, and returns the error that ends the pass. */
function failPod({ progress, now }: Pass, verb: Verb, type: string, failure: StepFailed): StepFailed {
  const message = `StatefulPodControl failed to ${verb} Pod error: ${failure.message}`;
  progress.conditions.push({ type, status: "True", lastTransitionTime: now, message });
  return failure;
}

/** Creates missing claims. An existing claim is used unchanged unless it terminates. Every claim is tried. */
export function* createMissingClaims(pass: Pass, pod: Pod): Steps<void> {
  const failures: StepFailed[] = [];
  for (const claim of claimsOf(pass.set, ordinalOf(pod))) {
    const created = yield* attempt(createMissingClaim(pass, pod, claim));
    if (created instanceof StepFailed) failures.push(created);
  }
  throwFailures(failures);
}

function* createMissingClaim(pass: Pass, pod: Pod, claim: PersistentVolumeClaim): Steps<void> {
  const name = claim.metadata?.name ?? "";
  const there = yield* attempt(findClaim(name));
  if (there instanceof StepFailed) {
    yield* recordClaim(pass, pod, name, there);
    throw new StepFailed(`failed to retrieve PVC ${name}: ${there.message}`);
  }
  if (there?.metadata?.deletionTimestamp) throw new StepFailed(`pvc ${name} is to be deleted`);
  if (there) return;
  const created = yield* attempt(ask({ kind: "CreateClaim", claim }));
  const isFailed = created instanceof StepFailed;
  if (isFailed && created.reason === "AlreadyExists")
    throw new StepFailed(`failed to create PVC ${name}: ${created.message}`);
  yield* recordClaim(pass, pod, name, created);
  if (isFailed) throw new StepFailed(`failed to create PVC ${name}: ${created.message}`, created.reason);
}

/** Records the outcome, also for a claim whose lookup failed. */
function* recordClaim({ set }: Pass, pod: Pod, name: string, outcome: unknown): Steps<void> {
  const where = `Pod ${pod.metadata?.name} in StatefulSet ${set.metadata?.name}`;
  const isFailed = outcome instanceof StepFailed;
  yield* record(isFailed ? "Warning" : "Normal", isFailed ? "FailedCreate" : "SuccessfulCreate", {
    message: isFailed
      ? `create Claim ${name} for ${where} failed error: ${outcome.message}`
      : `create Claim ${name} ${where} success`,
  });
}

/** Deletes a pod. A pod held by a hook is not deleted: it is "marked" first, and then "kept". */
export function* deletePod(pass: Pass, pod: Pod): Steps<"deleted" | "marked" | "kept"> {
  const { set, progress } = pass;
  if (isHooked(set.spec.lifecycle?.preDelete, pod)) {
    const stored = yield* asStored(pass, pod);
    if (lifecycleState(pod) === "PreparingDelete") {
      yield* holdBeforeDeletion(pass, stored);
      return "kept";
    }
    yield* changeState(pass, stored, "PreparingDelete");
    return "marked";
  }
  progress.written.add(pod.metadata?.uid ?? "");
  const deleted = yield* attempt(ask({ kind: "DeletePod", pod }));
  yield* recordPod(pass, "delete", pod, deleted);
  if (!(deleted instanceof StepFailed)) {
    progress.deleted.add(pod.metadata?.uid ?? "");
    return "deleted";
  }
  yield* record("Warning", "FailedDelete", {
    message: `failed to delete pod ${pod.metadata?.name}: ${deleted.message}`,
  });
  throw deleted;
}

/** Repairs name, labels, volumes and owners of the claims, as the present set wants them. */
export function* mendPod(pass: Pass, pod: Pod): Steps<void> {
  const { set, updateSet, gates, range, progress } = pass;
  const isRetained = gates.StatefulSetAutoDeletePVC ? yield* attempt(areClaimsRetained(updateSet, pod, range)) : true;
  if (hasIdentity(set, pod) && hasClaimVolumes(set, pod) && isRetained !== false) return;
  const { name = "", uid = "" } = pod.metadata ?? {};
  const before = progress.written.has(uid) ? yield* getPod(name) : pod;
  const named = hasIdentity(set, before) ? before : withIdentity(set, before, gates);
  const fixed = yield* attempt(
    (function* () {
      const isMounted = hasClaimVolumes(set, named);
      if (!isMounted) yield* createMissingClaims(pass, named);
      if (gates.StatefulSetAutoDeletePVC) yield* retainClaims(updateSet, named, range);
      const after = isMounted ? named : withClaimVolumes(updateSet, named);
      progress.written.add(uid);
      yield* ask({ kind: "UpdatePod", before, after });
    })(),
  );
  yield* recordPod(pass, "update", named, fixed);
  if (fixed instanceof StepFailed) throw failPod(pass, "update", "FailedUpdatePod", fixed);
}

function* recordPod({ set }: Pass, verb: Verb, pod: Pod, outcome: unknown): Steps<void> {
  const what = `${verb} Pod ${pod.metadata?.name} in StatefulSet ${set.metadata?.name}`;
  const isFailed = outcome instanceof StepFailed;
  const message = isFailed ? `${what} failed error: ${outcome.message}` : `${what} successful`;
  yield* record(isFailed ? "Warning" : "Normal", `${isFailed ? "Failed" : "Successful"}${PAST[verb]}`, { message });
}

export function* record(
  type: "Normal" | "Warning",
  reason: string,
  { message }: { readonly message: string },
): Steps<void> {
  // A lost Event changes nothing.
  yield { kind: "RecordEvent", type, reason, message };
}
