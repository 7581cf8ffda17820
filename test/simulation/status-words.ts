/**
 * Recounts pods from the store, and finds the words of a written status that the recount contradicts. Shares no code
 * with the product.
 */
import type { ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import {
  EVICT_MISSED_ANNOTATION,
  GATE_ANNOTATION,
  HASH_ANNOTATION,
  METRICS_ANNOTATION,
  REPLACE_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, StatusCondition } from "../../shared/api/sidecarset.ts";
import { isHalfUpgraded } from "./end-state.ts";
import { hasLabels } from "./label-match.ts";
import { hashOfPod, isPodReady, isSidecarOf, isWorking } from "./objects.ts";
import { partitionNow } from "./permission.ts";
import { drainOf } from "./pod-change.ts";
import { isReshaped } from "./replacements.ts";

/** The pods that the pass which writes a status must have seen. */
export interface Recount {
  /** selected pods that were not written to since the pass began */
  readonly steady: readonly Pod[];
  /** true if no selected pod came, went or changed since the pass began, so that `steady` has all pods */
  readonly isWhole: boolean;
  /** true if a write to a pod, or an eviction, was ever refused in this world */
  readonly wasRefused: boolean;
}

/** Reasons that a failed pass gives. Such a pass has counted no pod, so it changes only the condition Blocked. */
const OF_FAILED_PASSES = ["PassRefused", "Unreachable", "Contention", "Unread", "PassFailed"];

/** True for the status of a pass that failed. */
export function isOfFailedPass(status: SidecarSet["status"]): boolean {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  return OF_FAILED_PASSES.includes(blocked?.reason ?? "");
}

/** Reasons of Blocked that a SidecarSet may have although all its pods are updated and work. */
const WHATEVER_THE_PODS: ReadonlySet<string> = new Set([
  "Halted",
  "AnnotationUnreadable",
  "RestartHeld",
  "EvictionRefused",
  ...OF_FAILED_PASSES,
]);
/** Reasons of Blocked that need help from outside. Restarts for other pods, or the last wave, may wait for it. */
const OF_OUTSIDE: Readonly<Record<string, string>> = {
  Gate: GATE_ANNOTATION,
  GateDown: GATE_ANNOTATION,
  Metrics: METRICS_ANNOTATION,
};
/** Reasons of Blocked that only a refused write can cause. */
const OF_REFUSALS: ReadonlySet<string> = new Set(["Refused"]);
const FAILS: ReadonlySet<string> = new Set(["CrashLoopBackOff", "ImagePullBackOff"]);

/**
 * Returns one sentence for each fault. `set`: the SidecarSet with the written status, in the generation that the status
 * observes.
 */
export function wordProblems(set: SidecarSet, recount: Recount): readonly string[] {
  if (isOfFailedPass(set.status)) return [];
  const find = (type: string) => set.status?.conditions?.find((condition) => condition.type === type);
  const problems = [
    readyProblem(set, recount, find("Ready")),
    degradedProblem(set, recount, find("Degraded")),
    blockedProblem(set, recount, find("Blocked")),
    stalledProblem(set, recount, find),
    notUpgradableProblem(set, recount, find("NotUpgradable")),
  ];
  return problems.filter((problem) => problem !== undefined);
}

function readyProblem(set: SidecarSet, { steady }: Recount, ready?: StatusCondition): string | undefined {
  if (ready?.status !== "True") return undefined;
  const updated = steady.filter((pod) => isUpdated(set, pod));
  const down = updated.filter((pod) => !isPodReady(pod));
  if (down.length > 0) return `is Ready, and these updated pods are not: ${namesOf(down)}`;
  const old = steady.filter((pod) => !isUpdated(set, pod));
  const kept = ready.reason === "HeldByPartition" ? partitionNow(set, set.status?.matchedPods ?? 0) : 0;
  const left = old.filter((pod) => isFailing(set, pod));
  if (left.length > 0) return `is Ready, and these pods of an older release fail: ${namesOf(left)}`;
  if (old.length > kept) return `is Ready, ${kept} pods may be old, and these are: ${namesOf(old)}`;
  return ready.reason === "HeldByPartition" && kept === 0 ? "is held by a partition that keeps no pod" : undefined;
}

function degradedProblem(
  set: SidecarSet,
  { steady, isWhole }: Recount,
  degraded?: StatusCondition,
): string | undefined {
  const updated = steady.filter((pod) => isUpdated(set, pod));
  if (degraded?.status === "True")
    return isWhole && steady.every(isWorking) ? "is Degraded, and every pod works" : undefined;
  const failing = updated.filter((pod) => isFailing(set, pod));
  return degraded && failing.length > 0 ? `is not Degraded, and these pods fail: ${namesOf(failing)}` : undefined;
}

function blockedProblem(
  set: SidecarSet,
  { steady, isWhole, wasRefused }: Recount,
  blocked?: StatusCondition,
): string | undefined {
  const { status, reason = "" } = blocked ?? {};
  if (OF_REFUSALS.has(reason) && !wasRefused) return `says ${reason}, and no write was refused in this world`;
  if (status !== "True" || WHATEVER_THE_PODS.has(reason)) return undefined;
  const outside = OF_OUTSIDE[reason];
  if (outside !== undefined) return outsideProblem(set, reason, outside);
  const isDone = isWhole && steady.every((pod) => isUpdated(set, pod) && isWorking(pod));
  if (isDone) return `is Blocked by ${reason}, and every pod is updated and works`;
  const isFree = isWhole && reason === "MaxUnavailable" && steady.every(isWorking);
  return isFree ? "is Blocked by MaxUnavailable, and every pod works" : undefined;
}

function outsideProblem(set: SidecarSet, reason: string, annotation: string): string | undefined {
  return isAnnotated(set, annotation) ? undefined : `is Blocked by ${reason}, and has no annotation ${annotation}`;
}

/** Reasons of Blocked that end with an approval from outside. */
const AWAITING_A_YES: ReadonlySet<string> = new Set(["Gate", "Metrics"]);

/** Stalled means that the rollout needs help: it is blocked, or its pods must be recreated. */
function stalledProblem(
  set: SidecarSet,
  { steady, isWhole }: Recount,
  find: (type: string) => StatusCondition | undefined,
): string | undefined {
  const [stalled, blocked] = [find("Stalled"), find("Blocked")];
  const isBlocked = blocked?.status === "True" && !AWAITING_A_YES.has(blocked.reason);
  if (stalled === undefined) return undefined;
  if (isBlocked) return stalled.status === "True" ? undefined : `is Blocked by ${blocked.reason}, and not Stalled`;
  const name = set.metadata?.name ?? "";
  const isAtRest = (pod: Pod) => isWorking(pod) && !isHalfUpgraded(pod, name) && drainOf(pod, name) === undefined;
  // A check without a value needs help even if all pods work.
  if (stalled.status === "True" && blocked?.reason === "Metrics" && blocked.message.includes("says nothing"))
    return undefined;
  return isWhole && steady.every(isAtRest) ? restProblem(set, steady, stalled) : undefined;
}

/** Judges the status while all pods work and nothing blocks the rollout. */
function restProblem(set: SidecarSet, steady: readonly Pod[], stalled: StatusCondition): string | undefined {
  const left = steady.filter((pod) => !isUpdated(set, pod));
  if (stalled.status === "True")
    return left.length === 0 ? "is Stalled, and every pod is updated and works" : undefined;
  return isStuck(set, left) ? `is not Stalled, and only new pods can follow: ${namesOf(left)}` : undefined;
}

function notUpgradableProblem(set: SidecarSet, { steady }: Recount, said?: StatusCondition): string | undefined {
  if (said?.reason !== "AllUpgradable") return undefined;
  const { selector = {} } = set.spec.updateStrategy ?? {};
  const left = steady.filter((pod) => !isUpdated(set, pod) && hasLabels(pod.metadata?.labels, selector));
  const stuck = left.filter((pod) => isReshaped(pod, set));
  return stuck.length > 0 ? `says ${said.reason}, and only new pods can follow: ${namesOf(stuck)}` : undefined;
}

/** True if somebody wants an update, and none of these working pods can be updated in place. */
function isStuck(set: SidecarSet, left: readonly Pod[]): boolean {
  const { paused, type, selector = {}, maxUnavailable } = set.spec.updateStrategy ?? {};
  if (paused || type === "NotUpdate" || maxUnavailable === 0 || isSteered(set) || left.length === 0) return false;
  return left.every((pod) => isReshaped(pod, set) && hasLabels(pod.metadata?.labels, selector));
}

/**
 * True if annotations steer the rollout: then it may be held for reasons other than pods, or an eviction may have
 * begun.
 */
function isSteered(set: SidecarSet): boolean {
  const steering = [EVICT_MISSED_ANNOTATION, REPLACE_ANNOTATION, GATE_ANNOTATION, METRICS_ANNOTATION, WAVES_ANNOTATION];
  return steering.some((annotation) => isAnnotated(set, annotation));
}

function isAnnotated({ metadata }: SidecarSet, annotation: string): boolean {
  return metadata?.annotations?.[annotation] !== undefined;
}

function isUpdated({ metadata }: SidecarSet, pod: Pod): boolean {
  return hashOfPod(pod, metadata?.name ?? "") === metadata?.annotations?.[HASH_ANNOTATION];
}

/** True if a container of the SidecarSet cannot run, and the kubelet reports it. */
function isFailing({ metadata }: SidecarSet, pod: Pod): boolean {
  const names = new Set(
    pod.spec.containers.filter((one) => isSidecarOf(metadata?.name ?? "", one)).map(({ name }) => name),
  );
  const isStuck = ({ name, ready, state }: ContainerStatus) =>
    names.has(name) && !ready && FAILS.has(state?.waiting?.reason ?? "");
  return pod.status?.containerStatuses?.some(isStuck) === true && !isPodReady(pod);
}

function namesOf(pods: readonly Pod[]): string {
  return pods
    .map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`)
    .toSorted()
    .join(", ");
}
