/** Judges the removal of a pod when a pass sends it. The judge uses only the pods that the pass had read. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { Facts, SendingRule, Snapshot } from "./looks.ts";
import { told } from "./made.ts";
import { conditionIn, desiredOrdinals, isOrdered, ordinalOf } from "./objects.ts";
import { fixedPrintOf, podsOf, revisionIn, templateIn, updateRevisionOf } from "./own.ts";

export const deletedPod: SendingRule = (sent, facts) => {
  const { look, name } = sent;
  const { set } = look;
  const pod = podsOf(set, look.pods).find(({ metadata }) => metadata?.name === name);
  if (!pod) return ["is nobody's of this set"];
  if (isFinished(pod)) return [];
  if (!desiredOrdinals(set.spec).includes(ordinalOf(pod))) return waitProblems(look, pod);
  const isSpecified = pod.metadata?.labels?.["apps.kruise.io/specified-delete"] !== undefined;
  if (isSpecified) return waitProblems(look, pod);
  return [...updateProblems(look, pod, facts), ...policyProblems(set, pod, facts)];
};

/** Judges the first write to a pod that is updated in place. */
export const changedPod: SendingRule = ({ look, name, body }, facts) => {
  const pod = podsOf(look.set, look.pods).find(({ metadata }) => metadata?.name === name);
  const revision = (body as Partial<Pod>).metadata?.labels?.["controller-revision-hash"];
  if (!pod || revision === undefined || revision === null) return [];
  const update = updateRevisionOf(look.set, facts.revisions());
  return [
    ...told([[revision !== update?.metadata?.name, "is updated to another revision than the newest"]]),
    ...updateProblems(look, pod, facts),
  ];
};

function updateProblems(look: Snapshot, pod: Pod, facts: Facts): readonly string[] {
  const { set, touched } = look;
  const update = updateRevisionOf(set, facts.revisions())?.metadata?.name;
  if (revisionIn(pod) === update) return ["is updated already"];
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === "OnDelete") return ["is updated although nobody but users may"];
  if (!isHealthy(pod) || rollingUpdate?.unorderedUpdate) return waitProblems(look, pod);
  const desired = desiredOrdinals(set.spec);
  const reserved = new Set(facts.ledger().reservations.map(({ uid }) => uid));
  const isSkipped = (one: Pod) =>
    ordinalOf(one) > ordinalOf(pod) &&
    desired.includes(ordinalOf(one)) &&
    isHealthy(one) &&
    revisionIn(one) !== update &&
    !reserved.has(one.metadata?.uid ?? "") &&
    !touched.has(one.metadata?.name ?? "");
  const skipped = podsOf(set, look.pods).find(isSkipped);
  return [
    ...told([[skipped !== undefined, `is updated before ${skipped?.metadata?.name}`]]),
    ...waitProblems(look, pod),
  ];
}

/**
 * An ordered set removes no serving pod while another pod is unavailable. It updates no pod before all pods beyond the
 * range are deleted.
 */
function waitProblems({ set, pods }: Snapshot, pod: Pod): readonly string[] {
  if (!isOrdered(set) || !isHealthy(pod)) return [];
  const own = podsOf(set, pods);
  const desired = desiredOrdinals(set.spec);
  const waiting = desired.filter((ordinal) => {
    const there = own.find((one) => ordinalOf(one) === ordinal);
    return ordinal !== ordinalOf(pod) && !(there && isHealthy(there));
  });
  const beyond = own.filter((one) => !desired.includes(ordinalOf(one)) && ordinalOf(one) >= 0);
  const isUpdate = desired.includes(ordinalOf(pod));
  return told([
    [waiting.length > 0, `goes while ordinal ${waiting} was not ready`],
    [isUpdate && beyond.length > 0, `is updated while ${beyond[0]?.metadata?.name} was still there`],
  ]);
}

/** Reports a pod that is deleted for an update, although it could be updated in place. */
function policyProblems({ spec }: StatefulSet, pod: Pod, facts: Facts): readonly string[] {
  const policy = spec.updateStrategy?.rollingUpdate?.podUpdatePolicy;
  const recorded = facts.revisions().find(({ metadata }) => metadata?.name === revisionIn(pod));
  if (policy === "ReCreate" || !recorded) return [];
  const isPossible = fixedPrintOf(templateIn(recorded)) === fixedPrintOf(spec.template ?? {});
  return told([
    [policy === "InPlaceOnly", "is deleted to be updated, which is to be in place only"],
    [isPossible, "is deleted to be updated, which was possible in place"],
  ]);
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === "Failed" || status?.phase === "Succeeded";
}

function isHealthy(pod: Pod): boolean {
  return (
    pod.status?.phase === "Running" && conditionIn(pod, "Ready")?.status === "True" && !pod.metadata?.deletionTimestamp
  );
}
