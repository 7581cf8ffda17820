/** Which pods a SidecarSet, in one of its generations, may replace, and which replaced ones are still missing. Told apart from the core. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { hasLabels } from "./label-match.ts";
import { hashOfPod, isPodReady, isWorking, recordsIn } from "./objects.ts";

/** Somebody asked for pods to be replaced that only a new one can follow. */
export function isReplacing({ metadata }: SidecarSet): boolean {
  return metadata?.annotations?.[REPLACE_ANNOTATION]?.startsWith("NotUpgradable") === true;
}

/** More than its images differs. */
export function isReshaped(pod: Pod, { metadata }: SidecarSet): boolean {
  const records = recordsIn(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "{}");
  return records[metadata?.name ?? ""]?.hash !== metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
}

/** Of a pod that has the sidecars: a sentence when it may not be evicted. */
export function replacementProblem(sidecarSet: SidecarSet, pod: Pod): string | undefined {
  const { metadata, spec } = sidecarSet;
  if (!isReplacing(sidecarSet)) return "is evicted, and has its sidecars";
  const { paused, type, selector = {} } = spec.updateStrategy ?? {};
  if (paused || type === "NotUpdate") return "is evicted although the SidecarSet is paused";
  if (!hasLabels(pod.metadata?.labels, selector)) return "is evicted, and is not to be updated";
  if (hashOfPod(pod, metadata?.name ?? "") === metadata?.annotations?.[HASH_ANNOTATION])
    return "is evicted, and is at the new version";
  if (!isReshaped(pod, sidecarSet)) return "is evicted, and could be updated in place";
  const isOwned = pod.metadata?.ownerReferences?.some(({ controller }) => controller === true) === true;
  return isOwned ? undefined : "is evicted, and would not come back";
}

/** Pods that were ready when they were evicted, until others work in their places. */
export class MissingWitness {
  /** namespace/name → uid of the pod that was evicted */
  readonly #places = new Map<string, string>();

  evict(pod: Pod): void {
    if (isPodReady(pod)) this.#places.set(placeOf(pod), pod.metadata?.uid ?? "");
  }

  /** Of a SidecarSet that was recreated nobody knows what another had evicted. */
  clear(): void {
    this.#places.clear();
  }

  /** Of the one in its place, which was down, another pass has taken care. */
  forget(pod: Pod): void {
    this.#places.delete(placeOf(pod));
  }

  see(pod: Pod, isGone: boolean): void {
    const evicted = this.#places.get(placeOf(pod));
    if (evicted === undefined || evicted === pod.metadata?.uid) return;
    // Another one in its place works, or was there and somebody else took it away.
    if (isGone || isWorking(pod)) this.#places.delete(placeOf(pod));
  }

  /**
   * Those in whose places is no other pod, or one that carries this and does not work yet. One that carries something
   * else, or nothing, is down without the rollout's doing.
   */
  places(pods: readonly Pod[], set: string, hash: string | undefined): readonly string[] {
    const byPlace = new Map(pods.map((pod) => [placeOf(pod), pod]));
    const isMissing = ([place, evicted]: readonly [string, string]) => {
      const now = byPlace.get(place);
      return now === undefined || now.metadata?.uid === evicted || hashOfPod(now, set) === hash;
    };
    return [...this.#places].filter(isMissing).map(([place]) => place);
  }
}

/** namespace/name */
export function placeOf({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}
