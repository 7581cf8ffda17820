/** Decides which updated pods fail: not merely not ready yet, but with a container or a record that keeps them so. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { type Sequence, where } from "../../go/sequence.ts";
import { type ContainerFailure, failureOf, failureText } from "./container-failure.ts";
import { isSameImage } from "./image-alias.ts";
import { parseUpgradeRecords } from "./pod-records.ts";
import type { PodState } from "./pod-state.ts";
import { isHotUpgrade } from "./sidecar-containers.ts";
import { unreadableState } from "./update-state.ts";

export interface FailingPod {
  readonly namespace: string;
  readonly name: string;
  /** such as `agent: ImagePullBackOff` */
  readonly why: string;
  /** true: only a record in its annotations is at fault, so that no other release would help; absent: a container fails */
  readonly isRecord?: true;
  /** RFC3339: when it was given the latest sidecars; absent: not known */
  readonly updatedAt?: string;
}

/** By namespace and name. */
export function failingPods(sidecarSet: SidecarSet, states: Sequence<PodState>): readonly FailingPod[] {
  return where(states, ({ isUpdated, isReady, isConsistent }) => isUpdated && !(isReady && isConsistent))
    .flatMap((state) => {
      const { metadata } = state.pod;
      const failure = failureIn(state, sidecarSet);
      const key = { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
      return failure === undefined ? [] : [{ ...key, ...failure, ...updateOf(sidecarSet, state.pod) }];
    })
    .sort((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name));
}

function failureIn(state: PodState, sidecarSet: SidecarSet): Pick<FailingPod, "why" | "isRecord"> | undefined {
  const { pod, isConsistent } = state;
  const failure = failureOf(pod);
  if (failure !== undefined) return { why: failureWords(failure, state, sidecarSet) };
  const why = isConsistent ? undefined : unreadableState(pod);
  return why === undefined ? undefined : { why, isRecord: true };
}

/** A pod that has the latest sidecars by its records may have another image. */
export function failureWords(
  failure: ContainerFailure,
  { pod, isUpdated }: Pick<PodState, "pod" | "isUpdated">,
  sidecarSet: SidecarSet,
): string {
  const isForeign = isUpdated && hasOtherImage(pod, sidecarSet, failure.container);
  return isForeign ? `${failureText(failure)} of an image that is not the SidecarSet's` : failureText(failure);
}

/** True for a sidecar whose image somebody else has changed since: what becomes of it says nothing of the release. */
export function hasOtherImage({ spec }: Pod, sidecarSet: SidecarSet, container: string): boolean {
  const own = sidecarSet.spec.containers?.find((one) => one.name === container && !isHotUpgrade(one))?.image;
  const image = spec.containers.find(({ name }) => name === container)?.image;
  return own !== undefined && image !== undefined && !isSameImage(own, image);
}

function updateOf({ metadata: set }: SidecarSet, { metadata }: Pod): Pick<FailingPod, "updatedAt"> {
  const { records } = parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]);
  const updatedAt = records[set?.name ?? ""]?.updateTimestamp;
  return updatedAt ? { updatedAt } : {};
}
