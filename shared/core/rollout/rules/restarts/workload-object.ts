/** A workload's own state: whether it can restart, whether its rollout is complete, and how many pods it takes down. */
import type { IntOrString, KubernetesObject, Pod } from "../../../../api/kubernetes.ts";
import { HASH_ANNOTATION, RESTARTED_AT_ANNOTATION, RESTARTED_FOR_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { scaleIntOrPercent } from "../../../../go/int-or-percent.ts";
import { addSeconds, secondsBetween } from "../../../../go/seconds-between.ts";
import { countOf, each, type Sequence } from "../../../../go/sequence.ts";
import type { Restarted, RestartedKind } from "../../../actions.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { keyOfWorkload, type RestartedWorkload, restartedWorkloadOf } from "../../../pod/workload.ts";

interface Strategy {
  readonly type?: string;
  readonly rollingUpdate?: {
    readonly maxUnavailable?: IntOrString;
    readonly maxSurge?: IntOrString;
    readonly partition?: number;
  };
}

/** A Deployment, StatefulSet or DaemonSet of apps/v1, with the fields that restarts read. */
export interface Workload extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly strategy?: Strategy;
    readonly updateStrategy?: Strategy;
    readonly template?: Pick<KubernetesObject, "metadata">;
  };
  readonly status?: Readonly<Record<string, unknown>>;
}

/** The facts about workloads and their restarts. */
export interface Restarting {
  /** pods that missed their sidecars, when their workloads are restarted */
  readonly missed: readonly Pod[];
  /** workloads by key; null: it does not exist, or is not the one that its pods name */
  readonly workloads: ReadonlyMap<string, Workload | null>;
  /** restarts in the ledger */
  readonly restarted: readonly Restarted[];
  /** ends of sentences about workloads that were not read, by key, such as: cannot be read: … */
  readonly unread?: ReadonlyMap<string, string> | undefined;
  /** number from 0 to 1, exclusive: the place in a long line where the reading begins */
  readonly turn?: number | undefined;
}

interface OwedFacts {
  readonly sidecarSet: SidecarSet;
  readonly states: Sequence<PodState>;
  readonly replacement?: { readonly isStopped: (pod: Pod) => boolean } | undefined;
}

/** Seconds without a new pod after which a restart no longer delays others. */
const HOLDING_SECONDS = 3_600;
/** Limit of seconds between clocks. A later time is no time of a restart. */
const AHEAD_SECONDS = 300;

interface OpenFacts {
  /** uids of objects that a late write may still change */
  readonly reserved: ReadonlySet<string>;
  /** all pods that the SidecarSet selects */
  readonly pods: Sequence<Pod>;
  /** the present time, RFC3339, by the API server's clock */
  readonly now: string;
}

/**
 * The restarts of the ledger that hold up the others: their pods may still be taken down. A workload that cannot be read
 * is one of them. Its owner may let a restart stand still, so such a workload loses its place.
 */
export function openRestarts(restarting: Restarting, facts: OpenFacts): readonly Restarted[] {
  return watchedRestarts(restarting, facts).filter((one) => !isResting(one, restarting, facts));
}

/** Limit of stopped workloads in the ledger, each of which costs every look a read. */
const MOST_RESTING = 20;

/** The restarts that the ledger keeps: also the newest ones that stand still, because their owners may let them go on. */
export function watchedRestarts(restarting: Restarting, facts: OpenFacts): readonly Restarted[] {
  const { restarted, workloads } = restarting;
  const watched = restarted.filter((one) => {
    const workload = workloads.get(keyOfWorkload(one));
    if (workload === undefined || facts.reserved.has(one.uid)) return true;
    if (workload?.metadata?.uid !== one.uid || isThrough(one.workload, workload)) return false;
    return isMoving(keyOfWorkload(one), workload, facts);
  });
  const resting = new Set(watched.filter((one) => isResting(one, restarting, facts)).slice(0, -MOST_RESTING));
  return watched.filter((one) => !resting.has(one));
}

function isResting(one: Restarted, { workloads }: Restarting, { reserved }: OpenFacts): boolean {
  const workload = workloads.get(keyOfWorkload(one));
  return Boolean(workload) && !reserved.has(one.uid) && standsStill(one.workload, workload ?? {});
}

/** A StatefulSet with a partition goes on until the pods from there on are new. */
function standsStill(kind: RestartedKind, workload: Workload): boolean {
  const why = whyStopped(workload);
  if (why !== IS_PARTITIONED) return why !== undefined;
  const { partition = 0 } = strategyOf(workload).rollingUpdate ?? {};
  return numberOf(workload, "updatedReplicas") >= wantedOf(kind, workload) - partition;
}

function isMoving(key: string, { spec }: Workload, { pods, now }: OpenFacts): boolean {
  const age = secondsBetween(spec?.template?.metadata?.annotations?.[RESTARTED_AT_ANNOTATION] ?? "", now);
  if (age !== undefined && age >= -AHEAD_SECONDS && age < HOLDING_SECONDS) return true;
  const earliest = addSeconds(now, -HOLDING_SECONDS) ?? "";
  const isNew = ({ metadata }: Pod) => (metadata?.creationTimestamp ?? "") >= earliest;
  return countOf(pods, (pod) => isNew(pod) && restartedWorkloadOf(pod)?.key === key) > 0;
}

/**
 * Workloads whose restart would give pods their missed sidecars, if it is known: until then a wave is not complete. A
 * workload with an outdated pod waits for that pod, or must stay.
 */
export function owedRestarts(
  { missed, workloads }: Restarting,
  { sidecarSet: { metadata }, states, replacement }: OwedFacts,
): readonly RestartedWorkload[] {
  const hash = metadata?.annotations?.[HASH_ANNOTATION] ?? "";
  const isFree = ({ key, workload: kind }: RestartedWorkload) => {
    const known = workloads.get(key);
    return known === undefined || (known && !whyNotRestarted(kind, known, metadata?.name ?? "", hash));
  };
  const waiting = missed.filter((pod) => !replacement?.isStopped(pod));
  const refs = waiting.flatMap((pod) => restartedWorkloadOf(pod) ?? []).filter(isFree);
  const owed = new Map(refs.map((ref) => [ref.key, ref]));
  if (owed.size > 0)
    each(states, ({ pod, isUpdated }) => {
      if (!isUpdated) owed.delete(restartedWorkloadOf(pod)?.key ?? "");
    });
  return [...owed.values()];
}

/** The SidecarSets of the last restart, with their hashes. */
function restartsOf({ metadata }: Workload): ReadonlyMap<string, string> {
  const text = metadata?.annotations?.[RESTARTED_FOR_ANNOTATION] ?? "";
  const pairs = text.split(",").map((pair) => pair.split("="));
  return new Map(pairs.flatMap(([name, hash]) => (name && hash ? [[name, hash]] : [])));
}

/** The workload's annotation after a restart for this SidecarSet too. */
export function withRestartFor(workload: Workload, sidecarSet: string, hash: string): string {
  return [...new Map([...restartsOf(workload), [sidecarSet, hash]])].map((pair) => pair.join("=")).join(",");
}

/** The reason why the workload is not restarted for this version now; undefined: nothing prevents it. */
export function whyNotRestarted(
  kind: RestartedKind,
  workload: Workload,
  sidecarSet: string,
  hash: string,
): string | undefined {
  const why = whyStopped(workload);
  if (why !== undefined) return why;
  const isOver = isRolledOut(kind, workload);
  if (restartsOf(workload).get(sidecarSet) === hash)
    return `it was restarted for this version already${isOver ? "" : ", and not all of its pods are new yet"}`;
  return isOver ? undefined : "it is being rolled out already";
}

const IS_PARTITIONED = "its update strategy has a partition";

/** The reason why its controller makes no new pods for a restart, or not all of them; undefined: it makes all. */
export function whyStopped(workload: Workload): string | undefined {
  const { metadata, spec } = workload;
  const { type, rollingUpdate } = strategyOf(workload);
  if (metadata?.deletionTimestamp) return "it is being deleted";
  if (spec?.paused) return "it is paused";
  if (type === "OnDelete") return "its update strategy is OnDelete";
  return (rollingUpdate?.partition ?? 0) > 0 ? IS_PARTITIONED : undefined;
}

/** True if the rollout is complete by the rules of `kubectl rollout status`. */
export function isThrough(kind: RestartedKind, workload: Workload): boolean {
  const available = kind === "DaemonSet" ? "numberAvailable" : "availableReplicas";
  return isRolledOut(kind, workload) && numberOf(workload, available) >= wantedOf(kind, workload);
}

/** The time of the restart, RFC3339. A second restart in the same second would have no effect. */
export function restartTime({ spec }: Workload, now: string): string {
  const before = spec?.template?.metadata?.annotations?.[RESTARTED_AT_ANNOTATION];
  return before === now ? (addSeconds(now, 1) ?? now) : now;
}

/** True if every pod has the newest template, ready or not. */
function isRolledOut(kind: RestartedKind, workload: Workload): boolean {
  if (numberOf(workload, "observedGeneration") < (workload.metadata?.generation ?? 0)) return false;
  const updated = numberOf(workload, kind === "DaemonSet" ? "updatedNumberScheduled" : "updatedReplicas");
  if (updated < wantedOf(kind, workload)) return false;
  if (kind === "Deployment") return numberOf(workload, "replicas") <= updated;
  return kind === "DaemonSet" || workload.status?.["currentRevision"] === workload.status?.["updateRevision"];
}

/** The number of pods that its own strategy may take down at once. */
export function mostDown(kind: RestartedKind, workload: Workload): number {
  const { type, rollingUpdate = {} } = strategyOf(workload);
  const wanted = wantedOf(kind, workload);
  if (type === "Recreate") return wanted;
  const { maxUnavailable = kind === "Deployment" ? "25%" : 1, maxSurge = kind === "Deployment" ? "25%" : 0 } =
    rollingUpdate;
  const most = scaled(maxUnavailable, wanted, kind === "Deployment");
  return most === 0 && scaled(maxSurge, wanted, false) > 0 ? 0 : Math.max(1, most);
}

function scaled(value: IntOrString, total: number, isRoundedDown: boolean): number {
  if (isRoundedDown && typeof value === "string") return Math.floor((Number.parseFloat(value) * total) / 100);
  return scaleIntOrPercent(value, total) ?? total;
}

function wantedOf(kind: RestartedKind, workload: Workload): number {
  return kind === "DaemonSet" ? numberOf(workload, "desiredNumberScheduled") : (workload.spec?.replicas ?? 1);
}

function strategyOf({ spec }: Workload): Strategy {
  return spec?.strategy ?? spec?.updateStrategy ?? {};
}

function numberOf({ status }: Workload, field: string): number {
  const value = status?.[field];
  return typeof value === "number" ? value : 0;
}
