/**
 * Checks the order of StatefulSets in upgrades by ordinals. The rules are written here again, independently of the
 * core, on purpose.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { IsInNamespace } from "./namespace-witness.ts";
import { hashOfPod, isWorking } from "./objects.ts";
import { selects, wants } from "./permission.ts";

export interface OrdinalScene {
  readonly pods: readonly Pod[];
  readonly isIn: IsInNamespace;
  /** uid of each pod that a pass took down and that has not worked since → the hash that the pass wrote */
  readonly taken: ReadonlyMap<string, { readonly hash: string }>;
  /** the newest SidecarSet, if the upgrade was reserved under it; undefined: not known */
  readonly sidecarSet: SidecarSet | undefined;
  /** uids of pods written to since this SidecarSet became the newest; a pass may not have seen these writes */
  readonly touched: ReadonlySet<string>;
}

/** Returns a sentence for a violation. `pod`: a pod that worked until now. */
export function ordinalViolation(pod: Pod, hash: string, scene: OrdinalScene): string | undefined {
  if (!isOfSet(pod)) return undefined;
  const others = scene.pods.filter((other) => isOfSet(other) && other.metadata?.uid !== pod.metadata?.uid);
  const down = others.find((other) => {
    const taken = scene.taken.get(other.metadata?.uid ?? "");
    return taken !== undefined && (taken.hash === hash || ownerOf(other) === ownerOf(pod));
  });
  if (down) return `comes before ${down.metadata?.name} of ${ownerOf(down)} is ready again`;
  const { sidecarSet, touched, isIn } = scene;
  if (!sidecarSet) return undefined;
  const higher = others.find(
    (other) =>
      ownerOf(other) === ownerOf(pod) &&
      ordinalOf(other) > ordinalOf(pod) &&
      !touched.has(other.metadata?.uid ?? "") &&
      isWaiting(other, sidecarSet, isIn),
  );
  return higher ? `comes before ${higher.metadata?.name}, which has a higher ordinal` : undefined;
}

function isWaiting(pod: Pod, sidecarSet: SidecarSet, isIn: IsInNamespace): boolean {
  const isOld = hashOfPod(pod, sidecarSet.metadata?.name ?? "") !== sidecarSet.metadata?.annotations?.[HASH_ANNOTATION];
  return isOld && isWorking(pod) && selects(sidecarSet, pod, isIn) && wants(sidecarSet, pod, isIn);
}

/** True for pods of StatefulSets; only such pods have an order. */
export function isOfSet({ metadata }: Pod): boolean {
  return metadata?.ownerReferences?.[0]?.kind === "StatefulSet";
}

export function ownerOf({ metadata }: Pod): string | undefined {
  return metadata?.ownerReferences?.[0]?.uid;
}

export function ordinalOf({ metadata }: Pod): number {
  return Number(metadata?.name?.split("-").at(-1));
}
