/**
 * Computes the right conditions of a SidecarSet and of its pods. The rules are written here again, independently of the
 * core, on purpose.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus, StatusCondition } from "../../shared/api/sidecarset.ts";
import { hasLabels } from "./label-match.ts";
import { hashOfPod, isInjected, isWorking } from "./objects.ts";
import { budgetOf } from "./permission.ts";
import { comesBack, isReplacing, isReshaped, placeOf } from "./replacements.ts";

/** A SidecarSet's pods after the world has settled, and their counts. */
export interface AtRest {
  readonly pods: readonly Pod[];
  /** the hash of updated pods */
  readonly hash: string;
  /** pods that have the selected labels and lack the containers */
  readonly missing: readonly Pod[];
  /** true if some pods wait for restarts that are held; absent: none does */
  readonly areRestartsHeld?: boolean;
}

/** Returns one sentence for each fault of the conditions. */
export function conditionProblems(set: SidecarSet, scene: AtRest): readonly string[] {
  const find = (type: string) => set.status?.conditions?.find((condition) => condition.type === type);
  const problems = [
    ...progressProblems(set, scene, find("Progressing")),
    scene.areRestartsHeld && find("Blocked")?.reason === "RestartHeld"
      ? undefined
      : problemUnless(find("Blocked"), "False"),
    scene.pods.every(isWorking) ? problemUnless(find("Degraded"), "False") : undefined,
    notUpgradableProblem(set, scene, find("NotUpgradable")),
    readyProblem(set, scene, find("Ready")),
    find("MissedInjection")?.status === "True" && scene.missing.length === 0
      ? "MissedInjection is True, and every pod has the sidecars"
      : undefined,
  ];
  return problems.filter((problem) => problem !== undefined);
}

function problemUnless(condition: StatusCondition | undefined, status: string): string | undefined {
  if (condition?.status === status) return undefined;
  return `${condition?.type ?? "a condition"} is ${condition?.status}, ${condition?.reason}: ${condition?.message}`;
}

function progressProblems(set: SidecarSet, scene: AtRest, progress?: StatusCondition) {
  // Nothing repairs pods that never work, and a rollout waits for them.
  const isWaiting = scene.pods.some((pod) => !isWorking(pod)) && progress?.reason === "WaitingForPods";
  if (isWaiting && progress.status === "True") return [];
  const held = holdOf(set, scene);
  const reason = progress?.reason ?? "";
  const isWithoutBudget = budgetOf(set, scene.pods.length) === 0;
  const others = ["NotUpdate", "Finished", ...(isWithoutBudget ? [] : ["Paused"])];
  const isTold = held === undefined ? !others.includes(reason) : reason === held;
  const told = `Progressing says ${reason}, and it is ${held ?? "none of these"}`;
  return [problemUnless(progress, "False"), isTold ? undefined : told];
}

/** Returns why the pods are left; undefined: some pods are left for another reason. */
function holdOf({ metadata, spec }: SidecarSet, { pods, hash }: AtRest): string | undefined {
  const { paused, type } = spec.updateStrategy ?? {};
  if (type === "NotUpdate") return "NotUpdate";
  if (paused) return "Paused";
  return pods.every((pod) => hashOfPod(pod, metadata?.name ?? "") === hash) ? "Finished" : undefined;
}

/** Ready may be True only if no pod is left to update. It must be True if all pods are updated and work. */
function readyProblem(set: SidecarSet, scene: AtRest, ready?: StatusCondition): string | undefined {
  const { metadata, spec } = set;
  const { selector = {}, partition = 0 } = spec.updateStrategy ?? {};
  const isOld = (pod: Pod) => hashOfPod(pod, metadata?.name ?? "") !== scene.hash;
  const left = scene.pods.filter(
    (pod) => isOld(pod) && hasLabels(pod.metadata?.labels, selector) && (isReplaced(set, pod) || !isReshaped(pod, set)),
  );
  const isDone = scene.pods.every((pod) => !isOld(pod) && isWorking(pod));
  if (isDone && ready?.reason !== "Paused") return problemUnless(ready, "True");
  const isHeld = ready?.reason === "HeldByPartition" && partition !== 0;
  return ready?.status === "True" && left.length > 0 && !isHeld
    ? `Ready says ${ready.reason}, and ${left.length} pods could be updated`
    : undefined;
}

/**
 * Returns old selected pods that differ in other fields than images, if such pods stay. `isStopped`: true for a
 * namespace where no pod is replaced.
 */
function lostPods(
  set: SidecarSet,
  { pods, hash }: AtRest,
  isStopped: (namespace: string) => boolean = () => false,
): readonly Pod[] {
  const { selector = {} } = set.spec.updateStrategy ?? {};
  return pods.filter(
    (pod) =>
      hashOfPod(pod, set.metadata?.name ?? "") !== hash &&
      hasLabels(pod.metadata?.labels, selector) &&
      isReshaped(pod, set) &&
      (!isReplaced(set, pod) || isStopped(pod.metadata?.namespace ?? "")),
  );
}

/**
 * A new pod without its sidecars stops replacements in its namespace, and two such namespaces stop all. Returns
 * undefined if the message names a pod that has its sidecars.
 */
function stoppedBy(set: SidecarSet, scene: AtRest, message: string): ((namespace: string) => boolean) | undefined {
  const [, list = ""] = /without what it says: (.*)$/.exec(message) ?? [];
  const named = list.split(", ").filter((name) => name.includes("/"));
  const isOld = (pod: Pod) => hashOfPod(pod, set.metadata?.name ?? "") !== scene.hash;
  const lacking = new Set([...scene.missing, ...scene.pods.filter(isOld)].map(placeOf));
  if (named.length === 0 || !named.every((name) => lacking.has(name))) return undefined;
  const namespaces = new Set(named.map((name) => name.split("/")[0]));
  return (namespace) => namespaces.size > 1 || namespaces.has(namespace);
}

function isReplaced(set: SidecarSet, pod: Pod): boolean {
  return isReplacing(set) && comesBack(pod, set);
}

/** False while the SidecarSet is paused: no pass looks at its pods. */
function areLookedAt({ spec }: SidecarSet): boolean {
  const { paused, type } = spec.updateStrategy ?? {};
  return !paused && type !== "NotUpdate";
}

function notUpgradableProblem(set: SidecarSet, scene: AtRest, condition?: StatusCondition): string | undefined {
  if (!areLookedAt(set)) return undefined;
  const { message = "", reason } = condition ?? {};
  const isStopped = reason === "ReplacedInVain" ? stoppedBy(set, scene, message) : () => false;
  if (!isStopped) return `NotUpgradable says ${message}, and one of these is not there or has what it should have`;
  const lost = lostPods(set, scene, isStopped).length;
  const told = condition?.status === "True" ? Number.parseInt(message, 10) : 0;
  return told === lost ? undefined : `NotUpgradable tells of ${told} pods, in truth of ${lost}`;
}

/** Returns the problems of the pods' conditions at rest. */
export function podConditionProblems(set: SidecarSet, scene: AtRest): readonly string[] {
  if (!areLookedAt(set)) return [];
  const name = set.metadata?.name ?? "";
  const lost = new Set(lostPods(set, scene));
  return scene.pods.flatMap((pod) => {
    const says = verdictOf(pod, name);
    const isUpdated = hashOfPod(pod, name) === scene.hash;
    const where = `the condition of ${pod.metadata?.name}`;
    if (lost.has(pod) && says !== false) return `${where} says ${says}, and it cannot be upgraded`;
    return isUpdated && says === false ? `${where} says false, and it is upgraded` : [];
  });
}

function verdictOf({ status }: Pod, set: string): boolean | undefined {
  const condition = status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION);
  const verdicts = JSON.parse(condition?.message || "{}") as Readonly<Record<string, boolean>>;
  return verdicts[set];
}

/** Returns a sentence if one pod's condition contradicts itself. */
export function selfContradiction({ status }: Pod): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION);
  if (!condition) return undefined;
  const verdicts = JSON.parse(condition.message || "{}") as Readonly<Record<string, boolean>>;
  const [should, reason] = Object.values(verdicts).includes(false)
    ? ["False", "UpdateImmutableField"]
    : ["True", "AllSidecarsetUpgradable"];
  const isRight = condition.status === should && condition.reason === reason;
  return isRight ? undefined : `is ${condition.status}, ${condition.reason}, and says ${condition.message}`;
}

/**
 * Returns contradictions in a status that a pass writes: between its conditions, its counts, and the earlier status.
 */
export function statusContradictions(next: SidecarSetStatus = {}, before: SidecarSetStatus = {}): readonly string[] {
  const conditions = next.conditions ?? [];
  const types = conditions.map(({ type }) => type);
  const progress = conditions.find(({ type }) => type === "Progressing");
  const { matchedPods = 0, updatedPods = 0, updatedReadyPods = 0 } = next;
  const told = /^(\d+) of (\d+) pods? updated, (\d+) of them ready(?:; .+)?$/.exec(progress?.message ?? "");
  const counts = [updatedPods, matchedPods, updatedReadyPods].join();
  const jumped = conditions.filter((condition) => {
    const was = before.conditions?.find(({ type }) => type === condition.type);
    return was?.status === condition.status && was.lastTransitionTime !== condition.lastTransitionTime;
  });
  return [
    ...(new Set(types).size < types.length ? [`has a condition twice: ${types}`] : []),
    ...(progress && told?.slice(1).join() !== counts ? [`counts ${counts}, and says ${progress.message}`] : []),
    ...(progress?.reason === "Finished" && updatedPods < matchedPods ? ["is finished, and not every pod updated"] : []),
    ...sumContradictions(conditions),
    ...jumped.map(({ type }) => `moves the time of ${type}, which is what it was`),
  ];
}

/** Returns contradictions in the three conditions that kstatus reads, which summarize the others. */
function sumContradictions(conditions: readonly StatusCondition[]): readonly string[] {
  const find = (type: string) => conditions.find((condition) => condition.type === type);
  const isTrue = (type: string) => find(type)?.status === "True";
  const sums = ["Ready", "Reconciling", "Stalled"];
  const told = sums.filter(isTrue);
  const reasons = new Set(sums.flatMap((type) => find(type)?.reason ?? []));
  const others = ["Progressing", "Blocked", "Degraded"].filter(isTrue);
  return [
    ...(told.length > 1 ? [`is ${told.join(" and ")} at once`] : []),
    ...(reasons.size > 1 ? [`has ${[...reasons].join(" and ")} for one verdict`] : []),
    ...(isTrue("Ready") && others.length > 0 ? [`is Ready and ${others.join(", ")}`] : []),
    ...(isTrue("Reconciling") && !isTrue("Progressing") ? ["reconciles, and does not progress"] : []),
    ...(isTrue("Stalled") && !isTrue("Blocked") && !isTrue("NotUpgradable") ? ["is stalled by nothing"] : []),
  ];
}

/** Returns pods that have the selected labels and lack the containers. */
export function podsWithout(set: SidecarSet, pods: readonly Pod[]): readonly Pod[] {
  const { selector = {} } = set.spec;
  return pods.filter((pod) => hasLabels(pod.metadata?.labels, selector) && !isInjected(pod, set.metadata?.name ?? ""));
}
