/** A whole pass over a set, in this order: revisions, pods in range, pods out of range, the update, the status. */
import type { ControllerRevision, LabelSelector, Pod, PodCondition } from "../../api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec, StatefulSetStatus, VolumeClaimStatus } from "../../api/stateful-set.ts";
import { selectorMatches } from "../../go/label-selector.ts";
import { ordinalOf } from "../pod/workload.ts";
import { volumeClaimStatus } from "./claims/claim-resize.ts";
import { newProgress, type Pass } from "./pass.ts";
import { adoptPods, newPod } from "./pods/identity.ts";
import { isInRange, ordinalRange, refuseManyParts } from "./pods/ordinals.ts";
import {
  isCreated,
  isRunningAndReady,
  isTakenAsUpdated,
  isTerminating,
  revisionOf,
  secondsUntilAvailable,
} from "./pods/pod-phase.ts";
import { keepReplicas, removeCondemned } from "./replicas.ts";
import { chooseRevisions, ownHistory, restoreTemplate, type SetRevisions, truncateSetHistory } from "./revisions.ts";
import { atLeastOne, rollingUpdate } from "./rolling-update.ts";
import { ask, attempt, type StatefulSetFeatureGates, StepFailed, type Steps } from "./step.ts";

export interface SetObservation {
  readonly set: StatefulSet;
  /** all pods of the namespace, or at least pods that the selector matches or the set owns */
  readonly pods: readonly Pod[];
  /** revisions of the namespace that the selector matches, with any owner */
  readonly revisions: readonly ControllerRevision[];
  readonly gates: StatefulSetFeatureGates;
  /** uids of pods that an earlier pass's write may still change; absent: none */
  readonly reserved?: ReadonlySet<string>;
  /** the present time: RFC3339, whole seconds, UTC */
  readonly now: string;
}

export interface SetOutcome {
  /** seconds until the next look; 0: no wait */
  readonly requeueAfterSeconds: number;
  /** name of the revision that pods will get; absent: it could not be registered */
  readonly updateRevision?: string;
  /** the failure that ended the pass early */
  readonly failure?: StepFailed;
}

/** Runs one pass. Source: OpenKruise pkg/controller/statefulset. */
export function* reconcileSet(seen: SetObservation): Steps<SetOutcome> {
  const { set } = seen;
  // An unreadable selector selects no pods, so the pass creates none.
  if (typeof selectorMatches(set.spec.selector, {}) === "object") return { requeueAfterSeconds: 0 };
  const waits: number[] = [];
  let updateRevision: string | undefined;
  const result = yield* attempt(
    (function* () {
      const history = yield* ownHistory(set, seen.revisions);
      const pods = yield* adoptPods(set, seen.pods);
      const { revisions, failure } = yield* syncPods(seen, history, pods, waits);
      updateRevision = revisions?.update.metadata?.name;
      // Without the current revision, the revision for a rollback might be deleted.
      if (revisions)
        yield* truncateSetHistory(set, history, { pods, revisions: [revisions.current, revisions.update] });
      if (failure) throw failure;
    })(),
  );
  const requeueAfterSeconds = waits.length === 0 ? 0 : Math.min(...waits);
  return {
    requeueAfterSeconds,
    ...(updateRevision === undefined ? {} : { updateRevision }),
    ...(result instanceof StepFailed ? { failure: result } : {}),
  };
}

function* syncPods(
  seen: SetObservation,
  history: readonly ControllerRevision[],
  pods: readonly Pod[],
  waits: number[],
): Steps<{ readonly revisions?: SetRevisions; readonly failure?: StepFailed }> {
  const revisions = yield* attempt(chooseRevisions(seen.set, history));
  if (revisions instanceof StepFailed) return { failure: revisions };
  const pass = newPass(seen, history, pods, revisions);
  const failure = yield* attempt(sync(pass, revisions.collisionCount));
  waits.push(...pass.progress.waits);
  return { revisions, ...(failure instanceof StepFailed ? { failure } : {}) };
}

/** Runs the pass. The status is written after any result for the pods, and counts them as they were listed. */
function* sync(pass: Pass, collisionCount: number): Steps<void> {
  const { set, slots, condemned } = pass;
  if (set.metadata?.deletionTimestamp)
    return yield* writeStatus(pass, collisionCount, pass.pods, yield* volumeClaimStatus(set, pass.pods));
  const scaled = yield* attempt(scale(pass));
  const inRange = slots.filter((pod) => pod !== undefined);
  const volumeClaims = yield* volumeClaimStatus(set, inRange);
  const isUpdating = scaled === true && set.spec.updateStrategy?.type !== "OnDelete";
  const updated = isUpdating ? yield* attempt(rollingUpdate(pass)) : undefined;
  yield* writeStatus(pass, collisionCount, [...inRange, ...condemned], volumeClaims);
  for (const failure of [scaled, updated]) if (failure instanceof StepFailed) throw failure;
}

/** Scales the set; false: the update has to wait. */
function* scale(pass: Pass): Steps<boolean> {
  const { scaleStrategy, replicas = 1 } = pass.set.spec;
  const most = scaleStrategy?.maxUnavailable;
  if (most !== undefined) pass.progress.scaleBudget = atLeastOne(most, replicas);
  return (yield* keepReplicas(pass)) && (yield* removeCondemned(pass));
}

function newPass(
  { set, gates, now, reserved = new Set() }: SetObservation,
  history: readonly ControllerRevision[],
  pods: readonly Pod[],
  { current, update }: SetRevisions,
): Pass {
  const range = ordinalRange(set.spec, gates.StatefulSetStartOrdinal);
  const currentSet = restoreTemplate(set, current);
  refuseManyParts(currentSet.spec);
  const parts = {
    set,
    currentSet,
    updateSet: restoreTemplate(set, update),
    current,
    update,
    history,
    pods,
    range,
    gates,
    reserved,
    now,
    isMonotonic: set.spec.podManagementPolicy !== "Parallel",
    minReadySeconds: set.spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0,
    progress: newProgress(),
  };
  const condemned = pods.filter((pod) => ordinalOf(pod) >= 0 && !isInRange(ordinalOf(pod), range));
  return {
    ...parts,
    slots: fillSlots(parts),
    condemned: condemned.toSorted((a, b) => ordinalOf(b) - ordinalOf(a)),
  };
}

type Unfilled = Omit<Pass, "slots" | "condemned">;

/** The pods of the slots. Constructed pods count for the pods above them. */
function fillSlots(pass: Unfilled): readonly (Pod | undefined)[] {
  const { range, pods } = pass;
  const slots: (Pod | undefined)[] = Array.from({ length: range.end - range.start });
  for (const pod of pods) if (isInRange(ordinalOf(pod), range)) slots[ordinalOf(pod) - range.start] = pod;
  const filled = { below: 0, notUpdated: slots.filter((pod) => pod && isOld(pass, pod)).length };
  for (const index of slots.keys()) {
    if (range.reserved.has(index + range.start)) continue;
    slots[index] ??= constructPod(pass, filled, index + range.start);
    filled.below++;
  }
  return slots;
}

function isOld({ update, gates }: Unfilled, pod: Pod): boolean {
  return !isTakenAsUpdated(pod, update.metadata?.name ?? "", gates.PreparingUpdateAsUpdate);
}

/** `below`: pods in the slots below the next one. `notUpdated`: outdated pods in all slots. */
type Filled = Record<"below" | "notUpdated", number>;

function constructPod(pass: Unfilled, filled: Filled, ordinal: number): Pod {
  const isCurrent = isCurrentWanted(pass, filled, ordinal);
  const [set, revision] = isCurrent ? [pass.currentSet, pass.current] : [pass.updateSet, pass.update];
  const pod = newPod(set, ordinal, revision.metadata?.name ?? "", pass.gates);
  if (isOld(pass, pod)) filled.notUpdated++;
  return pod;
}

/** True for a new pod below the partition, which gets the template from before the update. */
function isCurrentWanted({ set, range }: Unfilled, { below, notUpdated }: Filled, ordinal: number): boolean {
  const { updateStrategy }: StatefulSetSpec = set.spec;
  if (updateStrategy?.type !== "RollingUpdate") return false;
  const { rollingUpdate: rolling } = updateStrategy;
  if (!rolling) return ordinal < range.start + (set.status?.currentReplicas ?? 0);
  const partition = rolling.partition ?? 0;
  return rolling.unorderedUpdate ? notUpdated < partition : below + 1 <= partition;
}

function* writeStatus(
  pass: Pass,
  collisionCount: number,
  pods: readonly Pod[],
  volumeClaims: readonly VolumeClaimStatus[],
): Steps<void> {
  const { set, progress, minReadySeconds, now } = pass;
  const context = {
    set,
    currentRevision: pass.current.metadata?.name ?? "",
    updateRevision: pass.update.metadata?.name ?? "",
    collisionCount,
    minReadySeconds,
    now,
  };
  const counted = countPods(pods, context);
  const counters = {
    ...counted,
    currentReplicas: counted.currentReplicas - progress.currentReplicasLost,
    updatedReplicas: counted.updatedReplicas - progress.updatedReplicasLost,
  };
  const status = setStatus(context, { counters, conditions: progress.conditions, volumeClaims });
  if (isStatusStale(set, status)) yield* ask({ kind: "UpdateStatus", status });
}

/** The status of a set after a pass. */
interface StatusContext {
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

function countPods(pods: readonly Pod[], context: StatusContext): Counters {
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

interface StatusParts {
  readonly counters: Counters;
  readonly conditions: readonly PodCondition[];
  readonly volumeClaims: readonly VolumeClaimStatus[];
}

/** Sets the status. When all existing pods are updated and ready, the update revision becomes the current one. */
function setStatus(context: StatusContext, { counters, conditions, volumeClaims }: StatusParts): StatefulSetStatus {
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
 * Compat: a change of these alone causes no write: updatedReadyReplicas, conditions, collisionCount and a new claim
 * template (statefulset.md, section 8).
 */
function isStatusStale({ status: before }: StatefulSet, after: StatefulSetStatus): boolean {
  if ((after.observedGeneration ?? 0) > (before?.observedGeneration ?? 0)) return true;
  if (COMPARED.some((field) => (before?.[field] || undefined) !== (after[field] || undefined))) return true;
  return (before?.volumeClaims ?? []).some((old) => {
    const now = after.volumeClaims?.findLast(({ volumeClaimName }) => volumeClaimName === old.volumeClaimName);
    return (
      now?.compatibleReplicas !== old.compatibleReplicas || now.compatibleReadyReplicas !== old.compatibleReadyReplicas
    );
  });
}

/** The selector as apimachinery prints it: requirements sorted by key, values sorted. */
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
