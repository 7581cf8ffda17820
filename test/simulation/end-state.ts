/** Finds the parts of a SidecarSet's wanted state that are missing after all faults have ended. */
import type { ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Ledger } from "../../shared/core/ledger.ts";
import { CONTROLLER_REVISIONS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import { leftBehind } from "./evictions.ts";
import { isStoppedIn } from "./in-vain.ts";
import type { IsInNamespace } from "./namespace-witness.ts";
import { EMPTY_IMAGE, hashOfPod, isFinished, isSidecarOf, isTenantPod, isWorking } from "./objects.ts";
import { budgetOf, partitionNow, reaches, selects } from "./permission.ts";
import { isReshaped, restartsAskedFor } from "./replacements.ts";
import { type leftByRestarts, NONE_LEFT } from "./restart-rest.ts";
import { revisionProblems } from "./revisions.ts";
import { conditionProblems, podConditionProblems, podsWithout } from "./set-conditions.ts";

interface EndFacts {
  readonly ledger: Ledger;
  readonly nowMs: number;
  readonly isIn: IsInNamespace;
  /** returns the pods that restarts of workloads leave behind; absent: no restarts */
  readonly leftBy?:
    | ((sidecarSet: SidecarSet, matched: readonly Pod[]) => ReturnType<typeof leftByRestarts>)
    | undefined;
}

/** Returns one sentence for each missing part; empty: the wanted state is reached. */
export function finalViolations(
  server: ApiServer,
  name: string,
  { ledger, nowMs, isIn, leftBy = () => NONE_LEFT }: EndFacts,
): readonly string[] {
  const set = server.peek<SidecarSet>(SIDECARSETS, { name });
  if (!set) return [`there is no SidecarSet ${name}`];
  const alive = server.all<Pod>(PODS).filter((pod) => !(pod.metadata?.deletionTimestamp || isFinished(pod)));
  const pods = alive.filter((pod) => selects(set, pod, isIn));
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
  const left = leftBy(set, pods);
  // For restarts of workloads, `left` applies instead.
  const isStopped = restartsAskedFor(set) > 0 ? () => false : isStoppedIn(set, pods, alive);
  const isLeft = (pod: Pod) => left.pods.has(pod) || (isReshaped(pod, set) && isStopped(pod));
  const isLate = (pod: Pod) => hashOfPod(pod, name) !== hash && reaches(set, pod, isIn) && !isLeft(pod);
  const waiting = pods.filter(isLate).length;
  const kept = partitionNow(set, pods.length);
  const down = alive.filter((pod) => !(isWorking(pod) || isTenantPod(pod))).map(({ metadata }) => metadata?.name);
  const awaited = (ledger.departed ?? []).filter(({ until }) => Date.parse(until) > nowMs);
  const problems = [
    ...(waiting > kept && budgetOf(set, pods.length) > 0 ? [`${waiting} pods wait, the partition keeps ${kept}`] : []),
    ...(down.length > 0 ? [`not working: ${down}`] : []),
    ...(ledger.reservations.length > 0 ? [`${ledger.reservations.length} reservations are left`] : []),
    ...(ledger.restarted?.length ? [`${ledger.restarted.length} workloads are being restarted still`] : []),
    ...left.problems,
    ...(awaited.length > 0 ? [`${awaited.length} evicted pods are awaited still`] : []),
    ...leftBehind(set, alive).map(({ metadata }) => `${metadata?.name} has no sidecars, and is not evicted`),
    ...statusProblems(set, pods, hash),
    ...hotProblems(set, pods),
    ...conditionProblems(set, { pods, hash, missing: podsWithout(set, alive), areRestartsHeld: left.pods.size > 0 }),
    ...podConditionProblems(set, { pods, hash, missing: [] }),
    ...revisionProblems(set, server.all<ControllerRevision>(CONTROLLER_REVISIONS), pods),
  ];
  return problems.map((problem) => `${name}: ${problem}`);
}

/** Returns readiness as the reference counts it: a pod in a hot upgrade is not ready. */
function isReady(pod: Pod, set: string): boolean {
  return isWorking(pod) && !isHalfUpgraded(pod, set);
}

/** True while both slots of a hot upgrade are in use. */
export function isHalfUpgraded({ spec }: Pod, set: string): boolean {
  const slots = spec.containers.filter((container) => isSidecarOf(set, container));
  return slots.length > 1 && slots.filter(({ image }) => image === EMPTY_IMAGE).length !== 1;
}

function statusProblems({ metadata, status }: SidecarSet, pods: readonly Pod[], hash: string): readonly string[] {
  const name = metadata?.name ?? "";
  const updated = pods.filter((pod) => hashOfPod(pod, name) === hash);
  const truth = {
    observedGeneration: metadata?.generation ?? 0,
    matchedPods: pods.length,
    updatedPods: updated.length,
    readyPods: pods.filter((pod) => isReady(pod, name)).length,
    updatedReadyPods: updated.filter((pod) => isReady(pod, name)).length,
  };
  return (Object.keys(truth) as (keyof typeof truth)[])
    .filter((key) => (status?.[key] ?? 0) !== truth[key])
    .map((key) => `status.${key} is ${status?.[key]}, in truth ${truth[key]}`);
}

/** A hot upgrade has ended when one slot of each pair is empty. */
function hotProblems({ metadata, spec }: SidecarSet, pods: readonly Pod[]): readonly string[] {
  const { paused, type } = spec.updateStrategy ?? {};
  if (paused || type === "NotUpdate") return [];
  const half = pods.filter((pod) => isHalfUpgraded(pod, metadata?.name ?? ""));
  return half.map((pod) => `the hot upgrade of ${pod.metadata?.name} has not ended`);
}
