/** Decides which updated pods a rollout waits for, and what each of them waits for. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { type Sequence, where } from "../../../go/sequence.ts";
import { failureOf, failureText, waitingReasonOf } from "../../pod/container-failure.ts";
import { isConsistent } from "../../pod/is-consistent.ts";
import { notReadyText } from "../../pod/is-ready.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { isDown } from "./budget.ts";

export interface DownPod {
  readonly namespace: string;
  readonly name: string;
  /** such as `agent: ImagePullBackOff` */
  readonly why: string;
}

/** The first `limit` of them, by namespace and name. */
export function downPods(sidecarSet: SidecarSet, pods: Sequence<PodState>, limit: number): readonly DownPod[] {
  return where(pods, (state) => state.isUpdated && isDown(state))
    .map(({ pod }) => ({ pod, namespace: pod.metadata?.namespace ?? "", name: pod.metadata?.name ?? "" }))
    .sort((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name))
    .slice(0, limit)
    .map(({ pod, namespace, name }) => ({ namespace, name, why: whyDown(sidecarSet, pod) }));
}

/** Containers that fail are named first, and the SidecarSet's own before others: they are what was changed. */
function whyDown(sidecarSet: SidecarSet, pod: Pod): string {
  const ours = new Set([...sidecarContainerNames(sidecarSet), ...natives(sidecarSet)]);
  const ofNatives = (pod.status?.initContainerStatuses ?? []).filter(({ name }) => natives(sidecarSet).includes(name));
  const statuses = [...ofNatives, ...(pod.status?.containerStatuses ?? [])];
  const unready = statuses.filter(({ ready }) => ready !== true);
  const failure = failureOf(pod, ours) ?? failureOf(pod);
  if (failure) return failureText(failure);
  const worst = unready.find(({ name }) => ours.has(name)) ?? unready[0];
  if (worst) return `${worst.name}: ${waitingReasonOf(worst) ?? "not ready"}`;
  const late = statuses.find(
    ({ name }) => ours.has(name) && !isConsistent(pod, sidecarSet.metadata?.name ?? "", new Set([name])),
  );
  return late ? `${late.name}: its new image does not run yet` : `the pod is ${notReadyText(pod)}`;
}

function natives({ spec }: SidecarSet): readonly string[] {
  return (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name);
}
