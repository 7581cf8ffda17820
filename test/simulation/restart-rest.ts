/**
 * Finds the pods that a restart of their workload should update, and that restarts may skip for a reason. The rules are
 * written here again, independently of the core.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { isMissedByRestarts } from "./evictions.ts";
import { isStoppedIn } from "./in-vain.ts";
import { hasLabels } from "./label-match.ts";
import type { IsInNamespace } from "./namespace-witness.ts";
import { hashOfPod } from "./objects.ts";
import { partitionNow } from "./permission.ts";
import { comesBack, isReplacing, needsAnother, restartsAskedFor } from "./replacements.ts";
import type { RestartWitness } from "./restart-witness.ts";
import type { WavePlan } from "./wave-witness.ts";
import { keyOf, ownProblem } from "./workload-objects.ts";
import type { Workloads } from "./workloads.ts";

interface Left {
  /** pods that may keep the old version */
  readonly pods: ReadonlySet<Pod>;
  /** one sentence for each problem */
  readonly problems: readonly string[];
}

export const NONE_LEFT: Left = { pods: new Set(), problems: [] };

interface Scene {
  readonly sidecarSet: SidecarSet;
  /** pods that the SidecarSet selects */
  readonly matched: readonly Pod[];
  /** all existing pods */
  readonly pods: readonly Pod[];
  readonly workloads: Workloads;
  readonly witness: RestartWitness;
  readonly isIn: IsInNamespace;
}

/** Returns the pods that restarts have skipped after all faults have ended. */
export function leftByRestarts(scene: Scene): Left {
  if (restartsAskedFor(scene.sidecarSet) === 0) return NONE_LEFT;
  const [replaced, missed] = [leftOfReplaced(scene), leftOfMissed(scene)];
  return {
    pods: new Set([...replaced.pods, ...missed.pods]),
    problems: [...replaced.problems, ...missed.problems],
  };
}

/** Returns the skipped pods that missed their sidecars. */
function leftOfMissed(scene: Scene): Left {
  const { sidecarSet, matched, pods, workloads } = scene;
  const since = Date.parse(sidecarSet.status?.selection?.since ?? "");
  const missed = pods.filter((pod) => isMissedByRestarts(sidecarSet, pod, since) && comesBack(pod, sidecarSet));
  if (missed.length === 0 || isStill(sidecarSet)) return NONE_LEFT;
  const old = matched.filter((pod) => isOld(scene, pod));
  const isStopped = isStoppedIn(sidecarSet, matched, pods);
  const isKept = (pod: Pod) => old.some((one) => workloads.uidOf(one) === workloads.uidOf(pod));
  const held = missed.filter(
    (pod) => isKept(pod) || isOfLaterWave(scene, pod) || isHeld(scene, pod, []) || isStopped(pod),
  );
  const open = missed.filter((pod) => !held.includes(pod));
  const told = sidecarSet.status?.conditions?.find(({ type }) => type === "MissedInjection");
  const isTold = held.length === 0 || namesOf(scene, held).some((name) => told?.message.includes(name));
  return {
    pods: new Set(held),
    problems: [
      ...(open.length === 0
        ? []
        : [`${open.map(({ metadata }) => metadata?.name)} missed sidecars, and no restart comes`]),
      ...(isTold ? [] : [`${namesOf(scene, held)} are not restarted, and MissedInjection says ${told?.message}`]),
    ],
  };
}

/** True if an earlier wave has not passed. Another judge decides which waves have passed. */
function isOfLaterWave({ sidecarSet, isIn }: Scene, pod: Pod): boolean {
  const waves = JSON.parse(sidecarSet.metadata?.annotations?.[WAVES_ANNOTATION] ?? "[]") as readonly WavePlan[];
  const rank = waves.findIndex(({ namespaceSelector }) => isIn(pod, namespaceSelector));
  const before = waves.slice(0, rank < 0 ? waves.length : rank);
  const passed = sidecarSet.status?.waves?.list.filter(({ passedAt }) => passedAt !== undefined) ?? [];
  return before.some((wave) => !passed.some(({ name }) => name === wave.name));
}

/** Returns the skipped pods that only a new pod can update. */
function leftOfReplaced(scene: Scene): Left {
  const { sidecarSet, matched, pods, workloads } = scene;
  if (!isReplacing(sidecarSet)) return NONE_LEFT;
  const old = matched.filter((pod) => isOld(scene, pod));
  const reshaped = old.filter(
    (pod) => needsAnother(pod, sidecarSet) && isMeant(scene, pod) && comesBack(pod, sidecarSet),
  );
  const held = reshaped.filter((pod) => isHeld(scene, pod, old));
  const kept = partitionNow(sidecarSet, matched.length);
  const others = reshaped.filter((pod) => !held.includes(pod));
  const hasWaves = sidecarSet.metadata?.annotations?.[WAVES_ANNOTATION] !== undefined;
  // A wave with a held pod has not passed.
  const isJudged = kept > 0 && !isStill(sidecarSet) && !(hasWaves && isHeldTold(scene, held));
  const beyond = isJudged ? beyondPartition(others, kept, workloads) : undefined;
  // New pods without their sidecars are reported by another condition.
  const isStopped = isStoppedIn(sidecarSet, matched, pods);
  const told =
    toldProblem(
      scene,
      held.filter((pod) => !isStopped(pod)),
    ) ?? vainProblem(scene, reshaped.filter(isStopped));
  const behind = hasWaves && held.length > 0 ? old : [];
  return {
    pods: new Set([...held, ...behind, ...(kept === 0 ? [] : others)]),
    problems: [...(beyond === undefined ? [] : [beyond]), ...(told === undefined ? [] : [told])],
  };
}

function isStill({ spec }: SidecarSet): boolean {
  const { paused, type, maxUnavailable } = spec.updateStrategy ?? {};
  return paused === true || type === "NotUpdate" || maxUnavailable === 0;
}

function isOld({ sidecarSet }: Scene, pod: Pod): boolean {
  return hashOfPod(pod, sidecarSet.metadata?.name ?? "") !== sidecarSet.metadata?.annotations?.[HASH_ANNOTATION];
}

function isMeant({ sidecarSet }: Scene, { metadata }: Pod): boolean {
  return hasLabels(metadata?.labels, sidecarSet.spec.updateStrategy?.selector ?? {});
}

/** True if the workload forbids its restart, was already restarted for this version, or does not exist. */
function isHeld(scene: Scene, pod: Pod, old: readonly Pod[]): boolean {
  const { workloads, witness, sidecarSet } = scene;
  const uid = workloads.uidOf(pod) ?? "";
  const workload = workloads.find(uid);
  if (workload === undefined || ownProblem(workload) !== undefined) return true;
  if (witness.wasRestartedFor(uid, sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "")) return true;
  return old.some((one) => workloads.uidOf(one) === uid && !isMeant(scene, one));
}

/** The partition holds back whole workloads. Only the last of them may have more pods than the partition demands. */
function beyondPartition(left: readonly Pod[], kept: number, workloads: Workloads): string | undefined {
  const sizes = [...Map.groupBy(left, (pod) => workloads.uidOf(pod)).values()].map((pods) => pods.length);
  const whole = left.length - Math.max(0, ...sizes);
  return whole >= kept && sizes.length > 1
    ? `${left.length} pods of ${sizes.length} workloads wait for restarts, the partition keeps ${kept}`
    : undefined;
}

/** The status must name one of the pods if nothing else blocks. */
function toldProblem(scene: Scene, held: readonly Pod[]): string | undefined {
  const { sidecarSet } = scene;
  const { partition = 0 } = sidecarSet.spec.updateStrategy ?? {};
  if (held.length === 0 || isStill(sidecarSet) || partition !== 0 || isHeldTold(scene, held)) return undefined;
  const blocked = blockedOf(sidecarSet);
  return `${namesOf(scene, held)} are not restarted, and Blocked says ${blocked?.reason}: ${blocked?.message}`;
}

function vainProblem(scene: Scene, stopped: readonly Pod[]): string | undefined {
  const { sidecarSet } = scene;
  const told = sidecarSet.status?.conditions?.find(({ type }) => type === "NotUpgradable");
  if (stopped.length === 0 || isStill(sidecarSet) || told?.reason === "ReplacedInVain") return undefined;
  return `${namesOf(scene, stopped)} came back in vain, and NotUpgradable says ${told?.reason}: ${told?.message}`;
}

function isHeldTold(scene: Scene, held: readonly Pod[]): boolean {
  const blocked = blockedOf(scene.sidecarSet);
  return blocked?.reason === "RestartHeld" && namesOf(scene, held).some((name) => blocked.message.includes(name));
}

function blockedOf({ status }: SidecarSet) {
  return status?.conditions?.find((one) => one.type === "Blocked");
}

function namesOf({ workloads }: Scene, held: readonly Pod[]): readonly string[] {
  return held.map((pod) => {
    const workload = workloads.find(workloads.uidOf(pod) ?? "");
    return workload ? keyOf(workload) : ` ${pod.metadata?.namespace}/`;
  });
}
