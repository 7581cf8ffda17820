/** Finds the updated pods that fail: a container or a record keeps them unready. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { type Sequence, where } from "../../go/sequence.ts";
import { type ContainerFailure, containerFailure, failureText } from "./container-failure.ts";
import { isSameImage } from "./image-alias.ts";
import { nativeSidecars } from "./native-sidecars.ts";
import { parseUpgradeRecords } from "./pod-records.ts";
import type { PodState } from "./pod-state.ts";
import { isHotUpgrade, sidecarContainerNames } from "./sidecar-containers.ts";
import { unreadableState } from "./update-state.ts";

export interface FailingPod {
  readonly namespace: string;
  readonly name: string;
  /** the failure, such as `agent: ImagePullBackOff` */
  readonly why: string;
  /** the cause if no other release would help: a record in the annotations, or a container or image of somebody else */
  readonly fault?: "record" | "foreign";
  /** time of the update to the latest sidecars, RFC3339; absent: it is unknown */
  readonly updatedAt?: string;
}

/** The failing pods, by namespace and name. */
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

/** Names of the SidecarSet's containers in a pod. */
export function ownContainers(sidecarSet: SidecarSet): ReadonlySet<string> {
  return new Set([...sidecarContainerNames(sidecarSet), ...nativeSidecars(sidecarSet).map(({ name }) => name)]);
}

/** The failure of a pod. Containers of the SidecarSet come first. */
function failureIn(state: PodState, sidecarSet: SidecarSet): Pick<FailingPod, "why" | "fault"> | undefined {
  const { pod, isConsistent } = state;
  const own = ownContainers(sidecarSet);
  const failure = containerFailure(pod, own) ?? containerFailure(pod);
  if (failure !== undefined) {
    const isForeign = !own.has(failure.container) || hasOtherImage(pod, sidecarSet, failure.container);
    return { why: failureWords(failure, state, sidecarSet), ...(isForeign ? { fault: "foreign" } : {}) };
  }
  const why = isConsistent ? undefined : unreadableState(pod);
  return why === undefined ? undefined : { why, fault: "record" };
}

/** True if an earlier release may help. */
export function isOfRelease(failing: readonly FailingPod[]): boolean {
  return failing.some(({ fault }) => fault === undefined);
}

/** The advice for `fault` "foreign": no release of the SidecarSet changes such a failure. */
export function foreignHint(why: string, name: string): string {
  const [container] = why.split(": ");
  if (why.endsWith(OTHER_IMAGE)) return `correct the image of ${container} in the pod: somebody else changed it`;
  return `correct ${container} where it comes from: it is no container of SidecarSet ${name}`;
}

const OTHER_IMAGE = " of an image that is not the SidecarSet's";

/** The words for a failure. A pod with the latest sidecars in its records may have another image. */
export function failureWords(
  failure: ContainerFailure,
  { pod, isUpdated }: Pick<PodState, "pod" | "isUpdated">,
  sidecarSet: SidecarSet,
): string {
  const isForeign = isUpdated && hasOtherImage(pod, sidecarSet, failure.container);
  return isForeign ? failureText(failure) + OTHER_IMAGE : failureText(failure);
}

/** True if somebody else has changed the sidecar's image since. Its failure then says nothing about the release. */
export function hasOtherImage({ spec }: Pod, sidecarSet: SidecarSet, container: string): boolean {
  const own = sidecarSet.spec.containers?.find((one) => one.name === container && !isHotUpgrade(one))?.image;
  const image = spec.containers.find(({ name }) => name === container)?.image;
  return own !== undefined && image !== undefined && !isSameImage(inNoRegistry(own), inNoRegistry(image));
}

/** The image without its registry: a cluster's webhooks may use a mirror with the same name and tag. */
function inNoRegistry(image: string): string {
  return image.slice(image.lastIndexOf("/") + 1);
}

function updateOf({ metadata: set }: SidecarSet, { metadata }: Pod): Pick<FailingPod, "updatedAt"> {
  const { records } = parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]);
  const updatedAt = records[set?.name ?? ""]?.updateTimestamp;
  return updatedAt ? { updatedAt } : {};
}
