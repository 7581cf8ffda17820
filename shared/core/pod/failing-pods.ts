/** Decides which updated pods fail: not merely not ready yet, but with a container that cannot run. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { type Sequence, where } from "../../go/sequence.ts";
import { failureOf, failureText } from "./container-failure.ts";
import { parseUpgradeRecords } from "./pod-records.ts";
import type { PodState } from "./pod-state.ts";

export interface FailingPod {
  readonly namespace: string;
  readonly name: string;
  /** such as `agent: ImagePullBackOff` */
  readonly why: string;
  /** RFC3339: when it was given the latest sidecars; absent: not known */
  readonly updatedAt?: string;
}

/** By namespace and name. */
export function failingPods(sidecarSet: SidecarSet, states: Sequence<PodState>): readonly FailingPod[] {
  return where(states, ({ isUpdated, isReady, isConsistent }) => isUpdated && !(isReady && isConsistent))
    .flatMap(({ pod }) => {
      const failure = failureOf(pod);
      return failure === undefined
        ? []
        : [
            {
              namespace: pod.metadata?.namespace ?? "",
              name: pod.metadata?.name ?? "",
              why: failureText(failure),
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
