/** Which pods a restart of their workload was to bring to the new version, and may leave behind for a reason. Told apart from the core. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { hasLabels } from "./label-match.ts";
import { hashOfPod } from "./objects.ts";
import { partitionNow } from "./permission.ts";
import { comesBack, isReplacing, isReshaped, restartsAskedFor } from "./replacements.ts";
import type { RestartWitness } from "./restart-witness.ts";
import { keyOf, ownProblem } from "./workload-objects.ts";
import type { Workloads } from "./workloads.ts";

interface Left {
  /** each may stay */
  readonly pods: ReadonlySet<Pod>;
  /** one sentence each */
  readonly problems: readonly string[];
}

export const NONE_LEFT: Left = { pods: new Set(), problems: [] };

interface Scene {
  readonly sidecarSet: SidecarSet;
  /** that it selects */
  readonly matched: readonly Pod[];
  readonly workloads: Workloads;
  readonly witness: RestartWitness;
}

/** Once nothing goes wrong any more. */
export function leftByRestarts(scene: Scene): Left {
  const { sidecarSet, matched, workloads } = scene;
  if (restartsAskedFor(sidecarSet) === 0 || !isReplacing(sidecarSet)) return NONE_LEFT;
  const old = matched.filter((pod) => isOld(scene, pod));
  const reshaped = old.filter(
    (pod) => isReshaped(pod, sidecarSet) && isMeant(scene, pod) && comesBack(pod, sidecarSet),
  );
  const held = reshaped.filter((pod) => isHeld(scene, pod, old));
  const kept = partitionNow(sidecarSet, matched.length);
  const others = reshaped.filter((pod) => !held.includes(pod));
  const hasWaves = sidecarSet.metadata?.annotations?.[WAVES_ANNOTATION] !== undefined;
  // A wave with one of those is not passed.
  const isJudged = kept > 0 && !isStill(sidecarSet) && !(hasWaves && isHeldTold(scene, held));
  const beyond = isJudged ? beyondPartition(others, kept, workloads) : undefined;
  const told = toldProblem(scene, held);
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

/** Of its own accord its workload is not restarted, or was for this very version, or it is none that is there. */
function isHeld(scene: Scene, pod: Pod, old: readonly Pod[]): boolean {
  const { workloads, witness, sidecarSet } = scene;
  const uid = workloads.uidOf(pod) ?? "";
  const workload = workloads.find(uid);
  if (workload === undefined || ownProblem(workload) !== undefined) return true;
  if (witness.wasRestartedFor(uid, sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "")) return true;
  return old.some((one) => workloads.uidOf(one) === uid && !isMeant(scene, one));
}

/** It keeps whole workloads: the last of those that it keeps may have more pods than it says, and no other. */
function beyondPartition(left: readonly Pod[], kept: number, workloads: Workloads): string | undefined {
  const sizes = [...Map.groupBy(left, (pod) => workloads.uidOf(pod)).values()].map((pods) => pods.length);
  const whole = left.length - Math.max(0, ...sizes);
  return whole >= kept && sizes.length > 1
    ? `${left.length} pods of ${sizes.length} workloads wait for restarts, the partition keeps ${kept}`
    : undefined;
}

/** Where nothing else is in the way, the status names one of them. */
function toldProblem(scene: Scene, held: readonly Pod[]): string | undefined {
  const { sidecarSet } = scene;
  const { partition = 0 } = sidecarSet.spec.updateStrategy ?? {};
  if (held.length === 0 || isStill(sidecarSet) || partition !== 0 || isHeldTold(scene, held)) return undefined;
  const blocked = blockedOf(sidecarSet);
  return `${namesOf(scene, held)} are not restarted, and Blocked says ${blocked?.reason}: ${blocked?.message}`;
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
