/** Decides how it is explained what a set did with a pod of its own, one that is not there included: an ordered trace of every rule. */

import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { note, ok, stop, wait } from "../../inspect/explain/step.ts";
import { commandText } from "../../pod/command-text.ts";
import { ordinalOf } from "../../pod/pod-name.ts";
import { isInRange, type OrdinalRange, ordinalRange } from "../pods/ordinals.ts";
import { revisionOf } from "../pods/pod-phase.ts";
import { atLeastOne } from "../rolling-update.ts";
import { isOwn, setStanding } from "./explain-set.ts";
import type { SetExplanationFacts, SetStep } from "./set-reasons.ts";
import { traceSetTerminating, traceState, traceWork } from "./trace-state.ts";
import { traceBefore, traceNext, traceTurn } from "./trace-turn.ts";

/** Pure. `name` is that of a pod as the set names its pods, whether it is there or not. */
export function explainSetPod(name: string, facts: SetExplanationFacts): readonly SetStep[] {
  const { seen, plan } = facts;
  const { set } = seen;
  const pod = seen.pods.find(({ metadata }) => metadata?.name === name);
  if (pod && !isOwn(set, pod)) return [traceStranger(name, facts, pod)];
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

/** Pods above are no matter of it. */
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
