/**
 * Judges an ordered set that is at rest: its status equals a recount, and its history and its claims' owners are right.
 */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import { told } from "./made.ts";
import { desiredOrdinals, ordinalOf, SET } from "./objects.ts";
import { ownerProblems, podsOf, printOf, revisionIn, revisionsOf, templateIn } from "./own.ts";
import { recount } from "./status-rule.ts";

interface AtRest {
  readonly set: StatefulSet;
  readonly pods: readonly Pod[];
  readonly claims: readonly PersistentVolumeClaim[];
  readonly revisions: readonly ControllerRevision[];
}

/** Returns one sentence for each fault. */
export function restProblems({ set, pods, claims, revisions }: AtRest): readonly string[] {
  const own = podsOf(set, pods);
  const history = revisionsOf(set, revisions).toSorted((a, b) => a.revision - b.revision);
  return [
    ...countProblems(set, own),
    ...historyProblems(set, own, history),
    ...own.flatMap((pod) => podProblems(set, pod, history)),
    ...ownedProblems(set, claims),
  ];
}

function countProblems(set: StatefulSet, pods: readonly Pod[]): readonly string[] {
  const { status, metadata } = set;
  const { currentRevision: current = "", updateRevision: update = "" } = status ?? {};
  const truth = {
    ...recount(set, pods, { current, update, nowMs: Number.MAX_SAFE_INTEGER, slackMs: 0 }),
    observedGeneration: metadata?.generation ?? 0,
    labelSelector: `app=${SET}`,
  };
  const isWhole = truth.updatedReplicas === truth.replicas && truth.readyReplicas === truth.replicas;
  const isComplete = set.spec.updateStrategy?.type === "RollingUpdate" && isWhole;
  const wrong = (Object.keys(truth) as (keyof typeof truth)[]).filter((key) => (status?.[key] || 0) !== truth[key]);
  return [
    ...wrong.map((key) => `status.${key} is ${status?.[key]}, in truth ${truth[key]}`),
    ...told([[isComplete && current !== update, "all pods are updated, and the current revision is not the newest"]]),
  ];
}

/** Every revision in use exists once, the newest has the highest number, and the limit is kept. */
function historyProblems(
  { status, spec }: StatefulSet,
  pods: readonly Pod[],
  history: readonly ControllerRevision[],
): readonly string[] {
  const names = history.map(({ metadata }) => metadata?.name ?? "");
  const used = new Set([...pods.map(revisionIn), status?.currentRevision ?? "", status?.updateRevision ?? ""]);
  const newest = history.find(({ metadata }) => metadata?.name === status?.updateRevision);
  const prints = new Set(history.map((one) => printOf(templateIn(one))));
  const unused = names.filter((name) => !used.has(name));
  return [
    ...[...used].filter((name) => !names.includes(name)).map((name) => `revision ${name} is used, and gone`),
    ...told([
      [
        newest !== undefined && newest.revision < (history.at(-1)?.revision ?? 0),
        "the newest revision has not the highest number",
      ],
      [
        newest !== undefined && printOf(templateIn(newest)) !== printOf(spec.template ?? {}),
        "the newest revision is an old one",
      ],
      [prints.size < history.length, "two revisions record the same"],
      [
        unused.length > (spec.revisionHistoryLimit ?? 10),
        `${unused.length} unused revisions, ${spec.revisionHistoryLimit} allowed`,
      ],
    ]),
  ];
}

function podProblems(set: StatefulSet, pod: Pod, history: readonly ControllerRevision[]): readonly string[] {
  const name = pod.metadata?.name;
  const recorded = history.find(({ metadata }) => metadata?.name === revisionIn(pod));
  const left = Object.keys(pod.metadata?.annotations ?? {}).includes("apps.kruise.io/inplace-update-grace");
  return [
    ...told([
      [recorded !== undefined && printOf(templateIn(recorded)) !== printOf(pod), "is not what its revision says"],
      [pod.metadata?.labels?.["lifecycle.apps.kruise.io/state"] !== "Normal", "is in no normal state"],
      [left, "is in its grace for ever"],
    ]),
    ...ownerProblems(pod, set),
  ].map((why) => `pod ${name} ${why}`);
}

/** Claims of existing pods are deleted with the set or stay, as the set says. */
function ownedProblems(set: StatefulSet, claims: readonly PersistentVolumeClaim[]): readonly string[] {
  const isSetOwner = set.spec.persistentVolumeClaimRetentionPolicy?.whenDeleted === "Delete";
  const desired = desiredOrdinals(set.spec);
  const isWrong = ({ metadata }: PersistentVolumeClaim) => {
    const owners = metadata?.ownerReferences ?? [];
    const isOwned = owners.length === 1 && owners[0]?.uid === set.metadata?.uid && owners[0]?.kind === "StatefulSet";
    return isSetOwner ? !isOwned : owners.length > 0;
  };
  return claims
    .filter((claim) => claim.metadata?.name === `data-${SET}-${ordinalOf(claim)}` && desired.includes(ordinalOf(claim)))
    .filter(isWrong)
    .map(
      ({ metadata }) =>
        `claim ${metadata?.name} has owners ${metadata?.ownerReferences?.map(({ kind, uid }) => `${kind} ${uid}`)}`,
    );
}
