/** Decides how it is told why a pod of an older template is not updated now. */

import type { Pod } from "../../../api/kubernetes.ts";
import { ok, stop, wait } from "../../inspect/explain/step.ts";
import { commandText } from "../../pod/command-text.ts";
import { ordinalOf } from "../../pod/pod-name.ts";
import { isInRange, ordinalRange } from "../pods/ordinals.ts";
import { isTerminating, revisionOf } from "../pods/pod-phase.ts";
import type { SetObservation } from "../reconcile.ts";
import { atLeastOne } from "../rolling-update.ts";
import type { Request } from "../step.ts";
import { updateOrder } from "../update-order.ts";
import { setStanding, type WaitingPod } from "./explain-set.ts";
import type { SetExplanationFacts, SetStep } from "./set-reasons.ts";
import { isMonotonic, referenceTo } from "./trace-state.ts";

const NAMED = 3;

/** One reason, the first that holds. */
export function traceTurn(facts: SetExplanationFacts, pod: Pod): SetStep {
  return traceHold(facts, pod) ?? traceNext(facts, pod) ?? traceBefore(facts, pod) ?? traceQueue(facts, pod);
}

/** What the strategy says about it. */
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

/** What the next pass does about the pod. */
export function traceNext({ plan }: SetExplanationFacts, { metadata }: Pick<Pod, "metadata">): SetStep | undefined {
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

/** What a pass does first, and whom it waits for. */
export function traceBefore({ seen, plan }: SetExplanationFacts, pod: Pick<Pod, "metadata">): SetStep | undefined {
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
