/** Tests calculateStatus, and every predicate about a pod that it uses. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { isConsistent } from "../../../shared/core/pod/is-consistent.ts";
import { hasAllSidecars, isActive, isInjected } from "../../../shared/core/pod/is-matched.ts";
import { isUpgradable, podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { sidecarContainerNames } from "../../../shared/core/pod/sidecar-containers.ts";
import { calculateStatus } from "../../../shared/core/rollout/decide.ts";
import { hasSettled } from "../../../shared/core/rollout/select/classify.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly sidecarSet: SidecarSet;
  readonly pods: readonly Pod[];
  readonly latestRevisionName: string;
  readonly collisionCount?: number;
}

interface Expected {
  readonly status: SidecarSetStatus;
  readonly updateFinished: boolean;
  readonly perPod: readonly unknown[];
}

/** Returns the reference's predicates about one pod. */
export function predicatesOf(pod: Pod, sidecarSet: SidecarSet) {
  const name = sidecarSet.metadata?.name ?? "";
  const state = podStateOf(pod, sidecarSet, undefined);
  const containers = [...sidecarContainerNames(sidecarSet)];
  return {
    canUpgrade: isUpgradable(pod, sidecarSet),
    containerConsistent: Object.fromEntries(
      containers.map((container) => [container, isConsistent(pod, name, new Set([container]))]),
    ),
    hasAllSidecars: hasAllSidecars(pod, sidecarSet),
    ready: state.isReady,
    stateConsistent: state.isConsistent,
    updated: state.isUpdated,
    upgradeConsistent: isUpgradable(pod, sidecarSet) && hasSettled(pod, sidecarSet),
  };
}

export function statusSuite(input: Input, expected: Expected): readonly Difference[] {
  const { sidecarSet } = input;
  const pods = input.pods.map((pod) => projectPod(pod, sidecarSet));
  const states = pods.map((pod) => podStateOf(pod, sidecarSet, undefined));
  const latest = { name: input.latestRevisionName, collisionCount: input.collisionCount ?? 0 };
  const status = calculateStatus(sidecarSet, states, latest);
  const perPod = pods.map((pod) => ({
    ...predicatesOf(pod, sidecarSet),
    active: isActive(pod),
    injected: isInjected(pod, sidecarSet.metadata?.name ?? ""),
    pod: `${pod.metadata?.namespace}/${pod.metadata?.name}`,
  }));
  const updateFinished = (status.updatedPods ?? 0) >= (status.matchedPods ?? 0);
  return compare({ status, perPod, updateFinished }, expected);
}
