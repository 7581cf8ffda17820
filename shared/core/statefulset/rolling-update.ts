/** Finds the pods of a set that get the update revision now, in place or by recreation, within the budget. */
import type { IntOrString, Pod } from "../../api/kubernetes.ts";
import { SPECIFIED_DELETE_LABEL } from "../../api/names.ts";
import type { RollingUpdateStatefulSet } from "../../api/stateful-set.ts";
import { quote } from "../../go/field-error.ts";
import { atoiProblem } from "../../go/int-or-percent.ts";
import { prioritize } from "../rollout/select/prioritize.ts";
import { areClaimsCompatible, areClaimsGrown, resizeClaims } from "./claims/claim-resize.ts";
import { whyNotCompleted } from "./in-place/update-completed.ts";
import { isAvailable, type Pass } from "./pass.ts";
import { isHealthy, isTakenAsUpdated, isTerminating, revisionOf } from "./pods/pod-phase.ts";
import { refresh, refreshWritten, updateInPlace } from "./pods/update-in-place.ts";
import { deletePod } from "./pods/write-pod.ts";
import { StepFailed, type Steps } from "./step.ts";

export function* rollingUpdate(pass: Pass): Steps<void> {
  const { set, slots, update, gates } = pass;
  const strategy = set.spec.updateStrategy?.rollingUpdate;
  if ((yield* refreshAll(pass)) || strategy?.paused) return;
  const replicas = set.spec.replicas ?? 1;
  const budget = atLeastOne(strategy?.maxUnavailable ?? 1, replicas);
  const down = yield* unavailablePods(pass);
  const isPreparingUpdated = gates.PreparingUpdateAsUpdate;
  const order = updateOrder(slots, { strategy, revision: update.metadata?.name ?? "", replicas, isPreparingUpdated });
  const left = beyondBudget(pass, order, down, budget);
  yield* deleteSpecified(pass, down, budget);
  yield* updateInOrder(
    pass,
    order.filter((pod) => !left.has(pod)),
    { down, budget },
  );
}

/** Compat: the first pod that the budget has no room for ends it, also if a later one is down anyway (section 4.8). */
function* updateInOrder(
  pass: Pass,
  pods: readonly Pod[],
  { down, budget }: { readonly down: Set<Pod>; readonly budget: number },
): Steps<void> {
  for (const pod of pods) {
    if (!(yield* needsUpdate(pass, pod))) continue;
    if (down.size >= budget && !down.has(pod)) return;
    if (yield* updatePod(pass, pod)) down.add(pod);
  }
}

/** The last reserved pods, beyond a budget that has shrunk. They count as down, but are not updated. */
function beyondBudget(pass: Pass, pods: readonly Pod[], down: ReadonlySet<Pod>, budget: number): ReadonlySet<Pod> {
  const held = pods.filter((pod) => down.has(pod) && isReserved(pass, pod) && isUp(pass, pod));
  return new Set(held.slice(Math.max(0, budget - (down.size - held.length))));
}

function isReserved({ reserved }: Pass, { metadata }: Pod): boolean {
  return reserved.has(metadata?.uid ?? "");
}

/**
 * A number as it is. Text is a percentage, with or without its sign, rounded down. At least 1. Source: apimachinery's
 * deprecated GetValueFromIntOrPercent.
 */
export function atLeastOne(value: IntOrString, replicas: number): number {
  if (typeof value === "number") return Math.max(1, value);
  const percent = value.replaceAll("%", "");
  const problem = atoiProblem(percent);
  if (problem !== undefined)
    throw new StepFailed(`invalid value for IntOrString: invalid value ${quote(value)}: ${problem}`);
  return Math.max(1, Math.floor((Number(percent) * replicas) / 100));
}

/** True if a pod changed, or was written earlier in this pass, and needs another look. */
function* refreshAll(pass: Pass): Steps<boolean> {
  const { written } = pass.progress;
  let isChanged = false;
  for (const pod of pass.pods) {
    const due = written.has(pod.metadata?.uid ?? "")
      ? yield* refreshWritten(pass, pod)
      : yield* refreshListed(pass, pod);
    if (due === "inPlace") return true;
    if (due === "state") isChanged = true;
  }
  return isChanged;
}

function* refreshListed(pass: Pass, pod: Pod): Steps<"state" | undefined> {
  return (yield* refresh(pass, pod)) ? "state" : undefined;
}

function* unavailablePods(pass: Pass): Steps<Set<Pod>> {
  const down = new Set<Pod>();
  for (const pod of pass.slots) {
    if (pod === undefined) continue;
    const isDown = !isUp(pass, pod) || isReserved(pass, pod);
    if (isDown || !(yield* areClaimsGrown(pass, pod))) down.add(pod);
  }
  return down;
}

function isUp(pass: Pass, pod: Pod): boolean {
  return isHealthy(pod) && whyNotCompleted(pod) === undefined && isAvailable(pass, pod);
}

/** Deletes pods that are marked for deletion, with any partition. */
function* deleteSpecified(pass: Pass, down: Set<Pod>, budget: number): Steps<void> {
  for (const pod of pass.slots.toReversed()) {
    if (!pod || !isSpecifiedDelete(pod) || (down.size >= budget && !down.has(pod))) continue;
    if ((yield* deletePod(pass, pod)) === "deleted") countLoss(pass, pod);
    down.add(pod);
  }
}

function countLoss({ progress, current, update }: Pass, pod: Pod): void {
  if (revisionOf(pod) === current.metadata?.name) progress.currentReplicasLost++;
  else if (revisionOf(pod) === update.metadata?.name) progress.updatedReplicasLost++;
}

function isSpecifiedDelete({ metadata }: Pod): boolean {
  return metadata?.labels?.[SPECIFIED_DELETE_LABEL] !== undefined;
}

function* needsUpdate(pass: Pass, pod: Pod): Steps<boolean> {
  return revisionOf(pod) !== pass.update.metadata?.name || !(yield* areClaimsCompatible(pass, pod));
}

/** Updates a pod; true: it counts as unavailable from now on. */
function* updatePod(pass: Pass, pod: Pod): Steps<boolean> {
  if (!(yield* resizeClaims(pass, pod))) return true;
  if (isSpecifiedDelete(pod) || isTerminating(pod)) return false;
  const isGoing = (yield* updateInPlace(pass, pod)) || (yield* deletePod(pass, pod)) === "deleted";
  if (isGoing && revisionOf(pod) === pass.current.metadata?.name) pass.progress.currentReplicasLost++;
  return true;
}

/** Chooses the pods of a rolling update, and their order. */
interface UpdateTarget {
  readonly strategy: RollingUpdateStatefulSet | undefined;
  /** name of the new revision */
  readonly revision: string;
  readonly replicas: number;
  /** gate PreparingUpdateAsUpdate */
  readonly isPreparingUpdated?: boolean;
}

/** `slots`: by rising ordinal, undefined for a reserved one. From the top down, or as unorderedUpdate says. */
export function updateOrder(slots: readonly (Pod | undefined)[], target: UpdateTarget): readonly Pod[] {
  const { strategy, revision, replicas, isPreparingUpdated = false } = target;
  const partition = strategy?.partition ?? 0;
  if (partition >= replicas) return [];
  const unordered = strategy?.unorderedUpdate;
  // Compat: partition is an index of slots, reserved ones included (statefulset.md, section 4).
  const candidates = (unordered ? slots : slots.slice(partition)).filter((pod) => pod !== undefined).toReversed();
  if (!unordered) return candidates.slice(0, replicas - partition);
  // Compat: pods that are updated already count as updated by this rollout (vector update-order).
  const isDone = (pod: Pod) => isTerminating(pod) || isTakenAsUpdated(pod, revision, isPreparingUpdated);
  const waiting = candidates.filter((pod) => !isDone(pod));
  const ordered = [...candidates.filter(isDone), ...prioritize(waiting, unordered.priorityStrategy)];
  return ordered.slice(0, replicas - partition);
}
