/** The updated pods that a rollout waits for, and the reason for each. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { type Sequence, where } from "../../../go/sequence.ts";
import type { Departure } from "../../actions.ts";
import { containerFailure, waitingReasonOf } from "../../pod/container-failure.ts";
import { failureWords, ownContainers } from "../../pod/failing-pods.ts";
import { isConsistent } from "../../pod/is-consistent.ts";
import { notReadyText, updateTimeOf, wasReadyAt } from "../../pod/is-ready.ts";
import { otherDrains } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { unreadableState } from "../../pod/update-state.ts";
import { isDown } from "./budget.ts";

export interface DownPod {
  readonly namespace: string;
  readonly name: string;
  /** the reason, such as `agent: ImagePullBackOff` */
  readonly why: string;
}

/** Pods that an older release left down. */
export interface LeftDown {
  readonly count: number;
  /** a few pods by name */
  readonly pods: readonly DownPod[];
  /** a sidecar of at least one pod cannot run */
  readonly areFailing: boolean;
}

/** The first `limit` updated pods that are down, by namespace and name. */
export function downPods(sidecarSet: SidecarSet, pods: Sequence<PodState>, limit: number): readonly DownPod[] {
  return namedDown(
    sidecarSet,
    where(pods, (state) => state.isUpdated && isDown(state)),
    limit,
  );
}

/** The first `limit` pods that use the budget: updated pods that are down, and pods that another SidecarSet drains. */
export function budgetHolders(sidecarSet: SidecarSet, pods: Sequence<PodState>, limit: number): readonly DownPod[] {
  const holds = (state: PodState) => state.isDrainedElsewhere === true || (state.isUpdated && isDown(state));
  return namedDown(sidecarSet, where(pods, holds), limit);
}

/** The pods of `downPods` and evicted pods without a successor, and old pods that an older release took down, or whose sidecars fail. */
export function allDownPods(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  { limit, gone = [] }: { readonly limit: number; readonly gone?: readonly Departure[] | undefined },
): { readonly down: readonly DownPod[]; readonly leftDown?: LeftDown } {
  const down = where(pods, isDown);
  const updated = down.filter(({ isUpdated }) => isUpdated);
  const names = ownContainers(sidecarSet);
  const fails = ({ pod }: PodState) => containerFailure(pod, names) !== undefined;
  const left = down.filter((state) => !state.isUpdated && (wasTakenDown(state, sidecarSet) || fails(state)));
  return {
    down: [...namedDown(sidecarSet, updated, limit), ...gone.map(withoutSuccessor)].slice(0, limit),
    ...(left.length > 0
      ? { leftDown: { count: left.length, pods: namedDown(sidecarSet, left, limit), areFailing: left.some(fails) } }
      : {}),
  };
}

function withoutSuccessor({ namespace, name }: Departure): DownPod {
  return { namespace, name, why: "it was evicted, and no other pod has taken its place yet" };
}

/** True if a pass updated the ready pod, and it has not been ready since. */
function wasTakenDown({ pod }: PodState, sidecarSet: SidecarSet): boolean {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  return updatedAt !== undefined && wasReadyAt(pod, updatedAt);
}

function namedDown(sidecarSet: SidecarSet, down: readonly PodState[], limit: number): readonly DownPod[] {
  return down
    .map((state) => ({ state, namespace: state.pod.metadata?.namespace ?? "", name: state.pod.metadata?.name ?? "" }))
    .sort((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name))
    .slice(0, limit)
    .map(({ state, namespace, name }) => ({ namespace, name, why: whyDown(sidecarSet, state) }));
}

/** The reason. It names failing containers first, and the SidecarSet's own before others, because they changed. */
function whyDown(sidecarSet: SidecarSet, state: PodState): string {
  const { pod } = state;
  const ours = ownContainers(sidecarSet);
  const ofNatives = (pod.status?.initContainerStatuses ?? []).filter(({ name }) => natives(sidecarSet).includes(name));
  const statuses = [...ofNatives, ...(pod.status?.containerStatuses ?? [])];
  const unready = statuses.filter(({ ready }) => ready !== true);
  const failure = containerFailure(pod, ours) ?? containerFailure(pod);
  if (failure) return failureWords(failure, state, sidecarSet);
  const worst = unready.find(({ name }) => ours.has(name)) ?? unready[0];
  if (worst) return `${worst.name}: ${waitingReasonOf(worst) ?? "not ready"}`;
  const late = statuses.find(
    ({ name }) => ours.has(name) && !isConsistent(pod, sidecarSet.metadata?.name ?? "", new Set([name])),
  );
  return late
    ? (unreadableState(pod) ?? `${late.name}: its new image does not run yet`)
    : outText(pod, sidecarSet.metadata?.name ?? "");
}

function outText(pod: Pod, sidecarSet: string): string {
  const others = otherDrains(pod, sidecarSet);
  return others.length > 0 ? `drained for ${others.join(", ")}` : `the pod is ${notReadyText(pod)}`;
}

function natives({ spec }: SidecarSet): readonly string[] {
  return (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name);
}
