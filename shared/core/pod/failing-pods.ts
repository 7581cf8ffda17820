/** Decides which updated pods fail: not merely not ready yet, but with a container that cannot run. */
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { parseUpgradeRecords } from "../hash/pod-records.ts";
import { compareUtf8 } from "../lib/go-json.ts";
import { type Sequence, where } from "../lib/sequence.ts";
import type { PodState } from "./pod-state.ts";

export interface FailingPod {
  readonly namespace: string;
  readonly name: string;
  /** such as `agent: ImagePullBackOff` */
  readonly why: string;
  /** RFC3339: when it was given the latest sidecars; absent: not known */
  readonly updatedAt?: string;
}

/** Why a container that should run waits, where that is not a matter of moments, or why it ended. */
const FAILING: ReadonlySet<string> = new Set([
  "ContainerCannotRun",
  "CrashLoopBackOff",
  "CreateContainerConfigError",
  "CreateContainerError",
  "ErrImageNeverPull",
  "ErrImagePull",
  "Error",
  "ImageInspectError",
  "ImagePullBackOff",
  "InvalidImageName",
  "OOMKilled",
  "PostStartHookError",
  "RunContainerError",
  "StartError",
]);

/** By namespace and name. */
export function failingPods(sidecarSet: SidecarSet, states: Sequence<PodState>): readonly FailingPod[] {
  return where(states, ({ isUpdated, isReady, isConsistent }) => isUpdated && !(isReady && isConsistent))
    .flatMap(({ pod }) => {
      const why = failureOf(pod);
      return why === undefined
        ? []
        : [
            {
              namespace: pod.metadata?.namespace ?? "",
              name: pod.metadata?.name ?? "",
              why,
              ...updateOf(sidecarSet, pod),
            },
          ];
    })
    .sort((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name));
}

function updateOf({ metadata: set }: SidecarSet, { metadata }: Pod): Pick<FailingPod, "updatedAt"> {
  const { records } = parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]);
  const updatedAt = records[set?.name ?? ""]?.updateTimestamp;
  return updatedAt ? { updatedAt } : {};
}

/** Of the first container that fails, or the first of those `names`; undefined: none does. */
export function failureOf({ status }: Pod, names?: ReadonlySet<string>): string | undefined {
  for (const container of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
    const reason = container.ready || names?.has(container.name) === false ? undefined : reasonOf(container);
    if (reason !== undefined && FAILING.has(reason)) return `${container.name}: ${reason}`;
  }
  return undefined;
}

function reasonOf({ state }: ContainerStatus): string | undefined {
  return state?.waiting?.reason ?? state?.terminated?.reason;
}
