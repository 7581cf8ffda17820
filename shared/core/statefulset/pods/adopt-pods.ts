/** Decides which pods are a set's: it keeps its own, adopts those that nobody owns, and lets go of the others. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { StatefulSet } from "../../../api/stateful-set.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { parsePodName } from "../../pod/pod-name.ts";
import { controllerReference } from "../revisions.ts";
import { ask, attempt, findSet, StepFailed, type Steps, throwFailures } from "../step.ts";
import { isTerminating } from "./pod-phase.ts";

/** `pods`: all of the namespace. Throws after the last of them if some could not be adopted or released. */
export function* adoptPods(set: StatefulSet, pods: readonly Pod[]): Steps<readonly Pod[]> {
  const claimed: Pod[] = [];
  const failures: StepFailed[] = [];
  for (const pod of pods) {
    const own = yield* attempt(ownOrAdopted(set, pod));
    if (own instanceof StepFailed) failures.push(own);
    else if (own) claimed.push(own);
  }
  throwFailures(failures);
  return claimed;
}

/** The pod if it is the set's from now on. */
function* ownOrAdopted(set: StatefulSet, pod: Pod): Steps<Pod | undefined> {
  const owner = pod.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const isDeleting = Boolean(set.metadata?.deletionTimestamp);
  const isMatch = matches(set, pod);
  if (owner) {
    if (owner.uid !== set.metadata?.uid) return undefined;
    if (isMatch) return pod;
    if (!isDeleting) yield* release(set, pod);
    return undefined;
  }
  return isMatch && !isDeleting && !isTerminating(pod) ? yield* adopt(set, pod) : undefined;
}

function matches({ metadata, spec }: StatefulSet, pod: Pod): boolean {
  const isSelected = selectorMatches(spec.selector, pod.metadata?.labels) === true;
  return isSelected && parsePodName(pod.metadata?.name ?? "").parent === metadata?.name;
}

function* adopt(set: StatefulSet, pod: Pod): Steps<Pod | undefined> {
  const fresh = yield* findSet();
  if (fresh?.metadata?.uid !== set.metadata?.uid) {
    throw new StepFailed(`original StatefulSet ${set.metadata?.namespace}/${set.metadata?.name} is gone`);
  }
  if (fresh?.metadata?.deletionTimestamp) throw new StepFailed(`${set.metadata?.name} has just been deleted`);
  const adopted = yield* unlessRefused(ask({ kind: "AdoptPod", pod, owner: controllerReference(set) }), "NotFound");
  return adopted as Pod | undefined;
}

function* release({ metadata }: StatefulSet, pod: Pod): Steps<void> {
  const request = { kind: "ReleasePod", pod, ownerUid: metadata?.uid ?? "" } as const;
  yield* unlessRefused(ask(request), "NotFound", "Invalid");
}

/** Undefined for a refusal that says there is nothing to do any more. */
function* unlessRefused(steps: Steps<unknown>, ...reasons: readonly string[]): Steps<unknown> {
  const result = yield* attempt(steps);
  if (!(result instanceof StepFailed)) return result;
  if (reasons.includes(result.reason)) return undefined;
  throw result;
}
