/** Decides what a pass writes into the status of a set. */
import type { LabelSelector, Pod, PodCondition } from "../../api/kubernetes.ts";
import type { StatefulSet, StatefulSetStatus, VolumeClaimStatus } from "../../api/stateful-set.ts";
import { isCreated, isRunningAndReady, isTerminating, revisionOf, secondsUntilAvailable } from "./pods/pod-phase.ts";

export interface StatusContext {
  readonly set: StatefulSet;
  readonly currentRevision: string;
  readonly updateRevision: string;
  readonly collisionCount: number;
  readonly minReadySeconds: number;
  readonly now: string;
}

type Counters = Pick<
  Required<StatefulSetStatus>,
  | "replicas"
  | "readyReplicas"
  | "availableReplicas"
  | "currentReplicas"
  | "updatedReplicas"
  | "updatedReadyReplicas"
  | "updatedAvailableReplicas"
>;

export function countPods(pods: readonly Pod[], context: StatusContext): Counters {
  const { currentRevision, updateRevision, minReadySeconds, now } = context;
  const created = pods.filter(isCreated);
  const staying = created.filter((pod) => !isTerminating(pod));
  const ready = created.filter(isRunningAndReady);
  const available = ready.filter((pod) => secondsUntilAvailable(pod, minReadySeconds, now) === 0);
  const isUpdated = (pod: Pod) => revisionOf(pod) === updateRevision;
  return {
    replicas: created.length,
    readyReplicas: ready.length,
    availableReplicas: available.length,
    currentReplicas: staying.filter((pod) => revisionOf(pod) === currentRevision).length,
    updatedReplicas: staying.filter(isUpdated).length,
    updatedReadyReplicas: ready.filter(isUpdated).length,
    updatedAvailableReplicas: available.filter(isUpdated).length,
  };
}

export interface StatusParts {
  readonly counters: Counters;
  readonly conditions: readonly PodCondition[];
  readonly volumeClaims: readonly VolumeClaimStatus[];
}

/** When all pods that exist are updated and ready, the update revision becomes the current one. */
export function setStatus(
  context: StatusContext,
  { counters, conditions, volumeClaims }: StatusParts,
): StatefulSetStatus {
  const { set, currentRevision, updateRevision, collisionCount } = context;
  const { replicas, readyReplicas, updatedReplicas, currentReplicas } = counters;
  const isRolling = set.spec.updateStrategy?.type === "RollingUpdate";
  const isComplete = isRolling && updatedReplicas === replicas && readyReplicas === replicas;
  const { generation } = set.metadata ?? {};
  return {
    ...(generation ? { observedGeneration: generation } : {}),
    ...counters,
    currentReplicas: isComplete ? updatedReplicas : currentReplicas,
    currentRevision: isComplete ? updateRevision : currentRevision,
    updateRevision,
    collisionCount,
    labelSelector: selectorText(set.spec.selector ?? {}),
    ...(conditions.length > 0 ? { conditions: lastOfEach(conditions) } : {}),
    ...(volumeClaims.length > 0 ? { volumeClaims } : {}),
  };
}

function lastOfEach(conditions: readonly PodCondition[]): readonly PodCondition[] {
  return conditions.filter(({ type }, index) => !conditions.slice(index + 1).some((later) => later.type === type));
}

const COMPARED = [
  "replicas",
  "currentReplicas",
  "readyReplicas",
  "availableReplicas",
  "updatedReplicas",
  "currentRevision",
  "updateRevision",
  "labelSelector",
] as const;

/**
 * Compat: what changes in nothing else is not worth a write: updatedReadyReplicas, conditions, collisionCount and a
 * new claim template (statefulset.md, section 8).
 */
export function isStatusStale({ status: before }: StatefulSet, after: StatefulSetStatus): boolean {
  if ((after.observedGeneration ?? 0) > (before?.observedGeneration ?? 0)) return true;
  if (COMPARED.some((field) => (before?.[field] || undefined) !== (after[field] || undefined))) return true;
  return (before?.volumeClaims ?? []).some((old) => {
    const now = after.volumeClaims?.findLast(({ volumeClaimName }) => volumeClaimName === old.volumeClaimName);
    return (
      now?.compatibleReplicas !== old.compatibleReplicas || now.compatibleReadyReplicas !== old.compatibleReadyReplicas
    );
  });
}

/** As apimachinery prints a selector: requirements sorted by key, values sorted. */
function selectorText({ matchLabels, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels ?? {}).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    const list = `(${[...values].sort().join(",")})`;
    const texts: Readonly<Record<string, string>> = {
      In: `${key} in ${list}`,
      NotIn: `${key} notin ${list}`,
      Exists: key,
      DoesNotExist: `!${key}`,
    };
    return { key, text: texts[operator] ?? "" };
  });
  const all = [...labels, ...expressions].sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
  return all.map(({ text }) => text).join(",");
}
