/** The explanation of a pod of a set: its history, and every rule that may be named. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { note, ok, type Step, stop, TICK_REASONS, wait } from "../../inspect/explain/step.ts";
import { traceGeneration, traceTick } from "../../inspect/explain/trace-hold.ts";
import { commandText } from "../../pod/command-text.ts";
import { containerFailure } from "../../pod/container-failure.ts";
import { ordinalOf } from "../../pod/workload.ts";
import { whyNotCompleted } from "../in-place/update-completed.ts";
import type { SetPlan } from "../plan/simulated-world.ts";
import { isInRange, type OrdinalRange, ordinalRange, whyLeftAlone } from "../pods/ordinals.ts";
import { isFinished, isRunningAndReady, isTerminating, lifecycleState, revisionOf } from "../pods/pod-phase.ts";
import type { SetObservation } from "../reconcile.ts";
import { atLeastOne, updateOrder } from "../rolling-update.ts";
import type { Request } from "../step.ts";
import { isPodOfSet, setStanding, type WaitingPod, whyNotAvailable } from "./explain-set.ts";

/** Pure. `name`: name of an existing or missing pod, in the set's form. */
export function explainSetPod(name: string, facts: SetExplanationFacts): readonly SetStep[] {
  const { seen, plan } = facts;
  const { set } = seen;
  const pod = seen.pods.find(({ metadata }) => metadata?.name === name);
  if (pod && !isPodOfSet(set, pod)) return [traceStranger(name, facts, pod)];
  const left = traceLeftAlone(seen);
  if (left) return [left];
  const range = ordinalRange(set.spec, seen.gates.StatefulSetStartOrdinal);
  const place = tracePlace(name, { range, facts, pod });
  if (place.verdict === "stop") return [place];
  const terminating = traceSetTerminating(seen);
  if (pod === undefined) return [place, ...terminating, ...traceMissing(name, facts), ...traceWork(facts)];
  const state = traceState(seen, pod, plan.outcome.updateRevision);
  const update = isInRange(ordinalOf(pod), range) ? traceRevision(pod, facts, state) : traceRemoval(facts, pod);
  const steps = [place, ...terminating, ...(state ? [state] : []), ...update];
  return steps.at(-1)?.reason === "UpdatedAndReady" ? steps : [...steps, ...traceWork(facts)];
}

/** The step about a set for which passes do nothing. */
export function traceLeftAlone({ set, gates }: SetObservation): SetStep | undefined {
  const problem = whyLeftAlone(set.spec, gates.StatefulSetStartOrdinal);
  return problem === undefined ? undefined : tracePassFails(problem);
}

export function tracePassFails(why: string): SetStep {
  return stop("PassFails", `every pass ends early: ${why}`, "fix what it names; the next pass goes on");
}

function traceStranger(name: string, { seen }: SetExplanationFacts, { metadata }: Pod): SetStep {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const whose = owner ? `${owner.kind} ${owner.name}` : "no workload yet";
  const hint = owner
    ? "the set cannot have a pod of this name until it is gone"
    : "the next pass adopts it if the set's selector matches its labels";
  return stop(
    "NotOfTheSet",
    `${name} is named like a pod of ${seen.set.metadata?.name}, and belongs to ${whose}`,
    hint,
  );
}

interface Place {
  readonly range: OrdinalRange;
  readonly facts: SetExplanationFacts;
  readonly pod: Pod | undefined;
}

function tracePlace(name: string, { range, facts, pod }: Place): SetStep {
  const { set } = facts.seen;
  const ordinal = ordinalOf({ metadata: { name } });
  const what = `ordinal ${ordinal} of ${set.metadata?.name}`;
  const wanted = `${set.spec.replicas ?? 1} pods are wanted${rangeText(range)}`;
  if (isInRange(ordinal, range)) return ok("OrdinalInRange", `${what}; ${wanted}`);
  const isReserved = range.reserved.has(ordinal);
  const reason = isReserved ? "OrdinalReserved" : "OutOfRange";
  const why = isReserved ? `${what} is one of spec.reserveOrdinals` : `${what} is beyond the range: ${wanted}`;
  if (pod) return note(reason, `${why}, so the pod is to be removed`);
  const hint = isReserved
    ? `take ${ordinal} out of spec.reserveOrdinals`
    : commandText`kubectl -n ${set.metadata?.namespace} scale statefulsets.apps.kruise.io/${set.metadata?.name} --replicas=NUMBER`;
  return stop(reason, `${why}, so there is no pod`, hint);
}

function rangeText({ start, end, reserved }: OrdinalRange): string {
  if (end === start) return "";
  const skipped = [...reserved].filter((one) => one >= start && one < end).length;
  return `, ordinals ${start} to ${end - 1}${skipped > 0 ? ` but for ${skipped} reserved` : ""}`;
}

function traceMissing(name: string, facts: SetExplanationFacts): readonly SetStep[] {
  const { seen, plan } = facts;
  const missing = note("PodMissing", "the pod does not exist");
  if (seen.set.metadata?.deletionTimestamp) return [missing];
  const pod = { metadata: { name } };
  const next = traceNext(facts, pod) ?? traceEarlier(facts, name);
  if (next) return [missing, next];
  const { waitingFor } = setStanding(seen, plan.outcome.updateRevision);
  const max = seen.set.spec.scaleStrategy?.maxUnavailable;
  if (max === undefined) return [missing, wait("WaitsForTurn", "the next pass does other things first")];
  const budget = atLeastOne(max, seen.set.spec.replicas ?? 1);
  const down = `${waitingFor.length} pods are not available, scaleStrategy.maxUnavailable is ${budget}`;
  return [missing, wait("ScaleBudgetUsed", `${down}: others come first`)];
}

/** Pods above do not matter here. */
function traceEarlier(facts: SetExplanationFacts, name: string): SetStep | undefined {
  const step = traceBefore(facts, { metadata: { name } });
  const { waitingFor } = setStanding(facts.seen, facts.plan.outcome.updateRevision);
  return step?.reason === "OrderWaits" && waitingFor[0]?.name === name ? undefined : step;
}

function traceRemoval(facts: SetExplanationFacts, pod: Pod): readonly SetStep[] {
  const next = facts.plan.writes.some(
    (one) => one.kind === "DeletePod" && one.pod.metadata?.name === pod.metadata?.name,
  );
  if (next) return [ok("NextInLine", "the next pass deletes the pod")];
  const before = traceBefore(facts, pod);
  if (before && before.reason !== "RemovalFirst") return [before];
  return [wait("WaitsForTurn", "pods beyond the range are removed from the highest ordinal down")];
}

function traceRevision(pod: Pod, facts: SetExplanationFacts, state: SetStep | undefined): readonly SetStep[] {
  const { seen, plan } = facts;
  const { updateRevision } = plan.outcome;
  if (revisionOf(pod) === updateRevision) {
    const is = `the pod has the newest template, ${revisionText(seen.revisions, updateRevision)}`;
    if (!state) return [ok("UpdatedAndReady", `${is}, and is available`)];
    const next = traceNext(facts, pod);
    return next ? [next] : [];
  }
  const has = revisionText(seen.revisions, revisionOf(pod));
  const newest = updateRevision ? revisionText(seen.revisions, updateRevision) : "one that no pass could record yet";
  const outdated = note("OutOfDate", `the pod has ${has}, the newest template is ${newest}`);
  return [outdated, ...(seen.set.metadata?.deletionTimestamp ? [] : [traceTurn(facts, pod)])];
}

function revisionText(revisions: readonly ControllerRevision[], name: string): string {
  const found = revisions.find(({ metadata }) => metadata?.name === name);
  if (name === "") return "no recorded revision";
  return found ? `revision ${found.revision} (${name})` : name;
}

// The texts about why a pod of an older template is not updated now.

const NAMED = 3;

/** The first reason that applies. */
function traceTurn(facts: SetExplanationFacts, pod: Pod): SetStep {
  return traceHold(facts, pod) ?? traceNext(facts, pod) ?? traceBefore(facts, pod) ?? traceQueue(facts, pod);
}

/** The strategy's effect on the pod. */
function traceHold({ seen, plan }: SetExplanationFacts, pod: Pod): SetStep | undefined {
  const { type, rollingUpdate } = seen.set.spec.updateStrategy ?? {};
  const { name, namespace } = pod.metadata ?? {};
  if (type === "OnDelete")
    return stop(
      "StrategyOnDelete",
      "pods are updated when they are deleted",
      commandText`kubectl -n ${namespace} delete pod ${name}`,
    );
  if (rollingUpdate?.paused)
    return stop(
      "StrategyPaused",
      "the update is paused",
      commandText`sidecarset resume ${referenceTo(seen)} -n ${namespace}`,
    );
  if (order(seen, plan.outcome.updateRevision).includes(pod)) return undefined;
  const partition = rollingUpdate?.partition ?? 0;
  return stop(
    "KeptByPartition",
    `the partition ${partition} keeps the pod as it is`,
    "lower spec.updateStrategy.rollingUpdate.partition when the updated pods are fine",
  );
}

/** The next pass's action on the pod. */
function traceNext({ plan }: SetExplanationFacts, { metadata }: Pick<Pod, "metadata">): SetStep | undefined {
  const what = plan.writes.flatMap((request) => actionOn(request, metadata?.name ?? "") ?? [])[0];
  return what === undefined ? undefined : ok("NextInLine", `the next pass ${what}`);
}

function actionOn(request: Request, name: string): string | undefined {
  switch (request.kind) {
    case "CreatePod":
      return request.pod.metadata?.name === name ? "creates the pod" : undefined;
    case "DeletePod":
      return request.pod.metadata?.name === name ? "deletes the pod, and another one takes its place" : undefined;
    case "UpdatePod":
      return request.before.metadata?.name === name && isUpdate(request) ? "updates the pod in place" : undefined;
    default:
      return undefined;
  }
}

function isUpdate({ before, after }: { readonly before: Pod; readonly after: Pod }): boolean {
  return revisionOf(before) !== revisionOf(after);
}

/** The step about the pass's first action, and the pod that it waits for. */
function traceBefore({ seen, plan }: SetExplanationFacts, pod: Pick<Pod, "metadata">): SetStep | undefined {
  const { failure, updateRevision } = plan.outcome;
  if (failure)
    return stop("PassFails", `every pass ends early: ${failure.message}`, "fix what it names; the next pass goes on");
  const { waitingFor, outOfRange } = setStanding(seen, updateRevision);
  const [first] = waitingFor;
  if (isMonotonic(seen) && first) return traceOrder(first, pod);
  if (isMonotonic(seen) && outOfRange > 0)
    return wait("RemovalFirst", `${outOfRange} pods beyond the range are removed first`);
  return undefined;
}

function traceOrder({ name, why }: WaitingPod, { metadata }: Pick<Pod, "metadata">): SetStep {
  const whom = name === metadata?.name ? "itself" : name;
  return wait("OrderWaits", `a set that keeps order goes on when its pods are ready, and waits for ${whom}: it ${why}`);
}

/** How many are before it, and who holds the budget. */
function traceQueue({ seen, plan }: SetExplanationFacts, pod: Pod): SetStep {
  const { updateRevision } = plan.outcome;
  if (seen.reserved?.has(pod.metadata?.uid ?? ""))
    return wait("Reserved", "an earlier pass has reserved the pod, and may still write to it");
  const { spec } = seen.set;
  const max = atLeastOne(spec.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, spec.replicas ?? 1);
  const { waitingFor } = setStanding(seen, updateRevision);
  const waiting = order(seen, updateRevision).filter((one) => revisionOf(one) !== updateRevision);
  const place = `the pod is number ${waiting.indexOf(pod) + 1} of ${waiting.length} that wait`;
  if (waitingFor.length < max) return wait("WaitsForTurn", `${place}; the next pass takes others first`);
  const named = waitingFor.slice(0, NAMED).map(({ name, why }) => `${name} (it ${why})`);
  const more = waitingFor.length > NAMED ? [`${waitingFor.length - NAMED} more`] : [];
  const held = `${waitingFor.length} of at most ${max} unavailable, held by ${[...named, ...more].join(", ")}`;
  return wait("BudgetUsed", `${place}; ${held}`);
}

function order({ set, pods, gates }: SetObservation, updateRevision: string | undefined): readonly Pod[] {
  const range = ordinalRange(set.spec, gates.StatefulSetStartOrdinal);
  const slots: (Pod | undefined)[] = Array.from({ length: range.end - range.start });
  for (const pod of pods) if (isInRange(ordinalOf(pod), range)) slots[ordinalOf(pod) - range.start] = pod;
  const { replicas = 1, updateStrategy } = set.spec;
  const isPreparingUpdated = gates.PreparingUpdateAsUpdate;
  const target = {
    strategy: updateStrategy?.rollingUpdate,
    revision: updateRevision ?? "",
    replicas,
    isPreparingUpdated,
  };
  return updateOrder(slots, target).filter((pod) => !isTerminating(pod));
}

// The texts about an unavailable pod of a set, and the advice.

export function referenceTo({ set }: Pick<SetObservation, "set">): string {
  return `statefulset.apps.kruise.io/${set.metadata?.name}`;
}

export function isMonotonic({ set }: Pick<SetObservation, "set">): boolean {
  return set.spec.podManagementPolicy !== "Parallel";
}

/** Undefined: the pod is available. */
export function traceState(seen: SetObservation, pod: Pod, updateRevision: string | undefined): SetStep | undefined {
  const { set, now } = seen;
  const why = whyNotAvailable(pod, set.spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0, now);
  if (why === undefined) return undefined;
  const message = `${pod.metadata?.name} ${why}`;
  if (isTerminating(pod)) return traceTerminating(pod, message);
  if (isFinished(pod)) return wait("PodFinished", `${message}; such a pod is deleted and recreated`);
  const state = lifecycleState(pod);
  if (state !== "" && state !== "Normal")
    return stop("HeldByHook", message, "it goes on when the hook's label or finalizer is removed");
  if (whyNotCompleted(pod) !== undefined && !isBroken(pod)) return wait("InPlaceUnderWay", message);
  if (isRunningAndReady(pod)) return wait("NotReadyForLongEnough", `${message} (minReadySeconds)`);
  if (!isBroken(pod)) return wait("PodNotReady", message);
  return stop("ContainerFailing", message, remedy(seen, pod, updateRevision));
}

export function isBroken(pod: Pod): boolean {
  return containerFailure(pod) !== undefined;
}

/** The advice. If the order waits for the very pod that an update would fix, only a deletion helps. */
function remedy(seen: SetObservation, pod: Pod, updateRevision: string | undefined): string {
  const isNewest = revisionOf(pod) === updateRevision;
  const { namespace, name } = pod.metadata ?? {};
  const hasPrevious = seen.revisions.some(({ metadata }) => metadata?.name !== updateRevision);
  const fix = hasPrevious
    ? `${commandText`sidecarset undo ${referenceTo(seen)} -n ${namespace}`} or fix the template`
    : "fix the template";
  if (!isMonotonic(seen) || seen.gates.StatefulSetUnblocked)
    return isNewest ? fix : commandText`see what its containers say: kubectl describe pod -n ${namespace} ${name}`;
  const remove = commandText`kubectl -n ${namespace} delete pod ${name}`;
  const why = "a set that keeps order never updates a pod that is not ready";
  return isNewest ? `${fix}, then ${remove}: ${why}` : `${remove}: ${why}`;
}

function traceTerminating({ metadata }: Pod, message: string): SetStep {
  const finalizers = metadata?.finalizers ?? [];
  return finalizers.length === 0
    ? wait("PodTerminating", `${message}; its place is taken by a new one when it is gone`)
    : stop(
        "PodTerminating",
        `${message}, and kept by ${finalizers.join(", ")}`,
        "it goes when the finalizer is removed",
      );
}

/** Tells whether passes work on the set. */
export function traceWork({ seen, lastPass }: SetExplanationFacts): readonly SetStep[] {
  const schedule = { lease: "sidecarset-ordered-sets", name: "the ordered-set function" };
  return [traceGeneration(seen.set) ?? [], traceTick(lastPass, seen.now, schedule)].flat();
}

/** The set itself is being deleted. */
export function traceSetTerminating({ set }: SetObservation): readonly SetStep[] {
  if (!set.metadata?.deletionTimestamp) return [];
  return [note("SetTerminating", "the set is being deleted: nothing is created or updated any more")];
}

// All rules in explanations of an Advanced StatefulSet, or of one of its pods.

export const SET_REASONS = [
  // The owner of the pod.
  "NotOfTheSet",
  "SetTerminating",
  "OrdinalInRange",
  "OrdinalReserved",
  "OutOfRange",
  // whether it exists and is healthy
  "PodMissing",
  "PodTerminating",
  "PodFinished",
  "HeldByHook",
  "InPlaceUnderWay",
  "ContainerFailing",
  "PodNotReady",
  "NotReadyForLongEnough",
  // whether it has the newest template
  "OutOfDate",
  "UpdatedAndReady",
  "StrategyOnDelete",
  "StrategyPaused",
  "KeptByPartition",
  // Its place in the order.
  "NextInLine",
  "OrderWaits",
  "RemovalFirst",
  "BudgetUsed",
  "ScaleBudgetUsed",
  "Reserved",
  "WaitsForTurn",
  "PassFails",
  // of the set as a whole
  "AllAsWanted",
  "UnderWay",
  ...TICK_REASONS,
] as const;

type SetReason = (typeof SET_REASONS)[number];
export type SetStep = Step<SetReason>;

/** The facts about a set. */
export interface SetExplanationFacts {
  readonly seen: SetObservation;
  /** the current actions of a pass */
  readonly plan: SetPlan;
  /** when a pass over Advanced StatefulSets renewed its Lease last, RFC3339; undefined: unknown */
  readonly lastPass: string | undefined;
}
