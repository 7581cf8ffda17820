/**
 * Finds the pods that a generation of a SidecarSet may replace, and the replaced pods that are still missing. The rules
 * are written here again, independently of the core.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Departure } from "../../shared/core/actions.ts";
import { hasLabels } from "./label-match.ts";
import { areImagesFixed, hashOfPod, isPodReady, isWorking, recordsIn } from "./objects.ts";

type Word = "NotUpgradable" | "Missed" | "Jobs";

const RESTART = /^Restart(?:=(\d+))?$/;

/** True if the annotation has this word. An annotation with an unknown word has no effect. */
export function isAskedFor(sidecarSet: SidecarSet, word: Word): boolean {
  const words = wordsOf(sidecarSet);
  return words.includes(word) && words.every((one) => RESTART.test(one) || /^(NotUpgradable|Missed|Jobs)$/.test(one));
}

function wordsOf({ metadata }: SidecarSet): readonly string[] {
  return metadata?.annotations?.[REPLACE_ANNOTATION]?.split(/ *, */) ?? [];
}

/** Returns how many workloads the annotation restarts at once, instead of evicting pods; 0: none. */
export function restartsAskedFor(sidecarSet: SidecarSet): number {
  const [, count = "1"] = wordsOf(sidecarSet).flatMap((word) => RESTART.exec(word)?.slice(0, 2) ?? []);
  return wordsOf(sidecarSet).some((word) => RESTART.test(word)) ? Number(count) : 0;
}

/** True if the annotation asks to replace pods that only a new pod can update. */
export function isReplacing(sidecarSet: SidecarSet): boolean {
  return isAskedFor(sidecarSet, "NotUpgradable");
}

/** True if the annotation asks to restart workloads whose pods missed their sidecars. */
export function isRestartingMissed(sidecarSet: SidecarSet): boolean {
  return restartsAskedFor(sidecarSet) > 0 && isAskedFor(sidecarSet, "Missed");
}

/**
 * True if another pod will replace this one. A Job's pod counts only if the annotation allows its work to start again.
 */
export function comesBack({ metadata }: Pod, sidecarSet: SidecarSet): boolean {
  const controller = metadata?.ownerReferences?.find((owner) => owner.controller === true);
  if (restartsAskedFor(sidecarSet) > 0)
    return isOfDeployment(metadata) || /^(Stateful|Daemon)Set$/.test(controller?.kind ?? "");
  return controller !== undefined && (controller.kind !== "Job" || isAskedFor(sidecarSet, "Jobs"));
}

/** Judges only by the pod's own labels and owner. */
function isOfDeployment({ ownerReferences = [], labels = {} }: NonNullable<Pod["metadata"]> = {}): boolean {
  const hash = labels["pod-template-hash"];
  return (
    hash !== undefined && ownerReferences.some(({ kind, name }) => kind === "ReplicaSet" && name.endsWith(`-${hash}`))
  );
}

/** True if the pod differs from the SidecarSet in other fields than images. */
export function isReshaped(pod: Pod, { metadata }: SidecarSet): boolean {
  const records = recordsIn(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "{}");
  return records[metadata?.name ?? ""]?.hash !== metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
}

/** True if only a new pod can be updated: other fields than images differ, or images may not change. */
export function needsAnother(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isReshaped(pod, sidecarSet) || areImagesFixed(sidecarSet);
}

/** Judges the eviction of a pod that has the sidecars. Returns a sentence if the pod may not be evicted. */
export function replacementProblem(sidecarSet: SidecarSet, pod: Pod): string | undefined {
  if (restartsAskedFor(sidecarSet) > 0) return "is evicted, and workloads are to be restarted";
  return successionProblem(sidecarSet, pod);
}

/** Returns a sentence if no new pod replaces this one after an eviction or a restart. */
export function successionProblem(sidecarSet: SidecarSet, pod: Pod): string | undefined {
  const { metadata, spec } = sidecarSet;
  if (!isReplacing(sidecarSet)) return "is evicted, and has its sidecars";
  const { paused, type, selector = {} } = spec.updateStrategy ?? {};
  if (paused || type === "NotUpdate") return "is evicted although the SidecarSet is paused";
  if (spec.injectionStrategy) return "is evicted, and would not come back at the new version";
  if (!hasLabels(pod.metadata?.labels, selector)) return "is evicted, and is not to be updated";
  if (hashOfPod(pod, metadata?.name ?? "") === metadata?.annotations?.[HASH_ANNOTATION])
    return "is evicted, and is at the new version";
  if (!needsAnother(pod, sidecarSet)) return "is evicted, and could be updated in place";
  return comesBack(pod, sidecarSet) ? undefined : "is evicted, and would not come back";
}

interface Leaving {
  readonly uid: string;
  /** uid of the controller, if its next pod has another name and has not come yet */
  readonly owner?: string | undefined;
  readonly atMs: number;
}

/** The least time in milliseconds that the ledger remembers an evicted pod whose replacement does not come. */
const AWAITED_MS = 600_000;

interface Newcomer {
  readonly owner: string | undefined;
  readonly pod: Pod;
  readonly atMs: number;
}

/**
 * Remembers pods that were ready when they were evicted, until their replacements work. The ledger counts a
 * controller's pods when it reserves an eviction. A pod that comes after that replaces an evicted pod.
 */
export class MissingWitness {
  /** namespace/name of the evicted pod, or of its replacement */
  readonly #places = new Map<string, Leaving>();
  /** uid of each pod that the ledger names as evicted → time since which it does */
  #reserved: ReadonlyMap<string, number> = new Map();
  /** uid → a new pod that came while no pod was missing */
  readonly #early = new Map<string, Newcomer>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  reserve(departed: readonly Departure[]): void {
    this.#reserved = new Map(departed.map(({ uid }) => [uid, this.#reserved.get(uid) ?? this.#nowMs()]));
  }

  evict(pod: Pod): void {
    if (!isPodReady(pod)) return;
    const { ownerReferences, uid = "" } = pod.metadata ?? {};
    const owner = ownerReferences?.[0]?.kind === "StatefulSet" ? undefined : ownerReferences?.[0]?.uid;
    const sinceMs = this.#reserved.get(uid) ?? this.#nowMs();
    const isEarly = (one: Newcomer) => one.owner === owner && owner !== undefined && one.atMs >= sinceMs;
    const [come, early] = [...this.#early].find(([, one]) => isEarly(one)) ?? [];
    const atMs = this.#nowMs();
    if (come === undefined || early === undefined) return void this.#places.set(placeOf(pod), { uid, owner, atMs });
    this.#early.delete(come);
    if (!isWorking(early.pod)) this.#places.set(placeOf(early.pod), { uid, owner: undefined, atMs });
  }

  /** Forgets evictions for an earlier SidecarSet of the same name. */
  clear(): void {
    this.#places.clear();
  }

  /** Forgets a pod that was not ready, because another pass has handled it. */
  forget(pod: Pod): void {
    this.#places.delete(placeOf(pod));
  }

  /** Records that the new pod replaces its controller's first missing pod. */
  come(pod: Pod): void {
    const owner = pod.metadata?.ownerReferences?.[0]?.uid;
    const [place, leaving] = [...this.#places].find(([, one]) => one.owner !== undefined && one.owner === owner) ?? [];
    if (place === undefined || leaving === undefined)
      return void this.#early.set(pod.metadata?.uid ?? "", { owner, pod, atMs: this.#nowMs() });
    this.#places.delete(place);
    this.#places.set(placeOf(pod), { ...leaving, owner: undefined });
  }

  see(pod: Pod, isGone: boolean): void {
    this.#seeEarly(pod, isGone);
    const evicted = this.#places.get(placeOf(pod));
    if (evicted === undefined || evicted.uid === pod.metadata?.uid) return;
    // The replacement works, or existed and was deleted.
    if (isGone || isWorking(pod)) this.#places.delete(placeOf(pod));
  }

  #seeEarly(pod: Pod, isGone: boolean): void {
    const uid = pod.metadata?.uid ?? "";
    const early = this.#early.get(uid);
    if (isGone) this.#early.delete(uid);
    else if (early) this.#early.set(uid, { ...early, pod });
  }

  /**
   * Returns the evicted pods without a replacement, or with one of this hash that does not work yet. A replacement with
   * another hash, or none, is down for a reason outside the rollout.
   */
  places(pods: readonly Pod[], set: string, hash: string | undefined): readonly string[] {
    if (this.#places.size === 0) return [];
    const byPlace = new Map(pods.map((pod) => [placeOf(pod), pod]));
    const isMissing = ([place, { uid }]: readonly [string, Leaving]) => {
      const now = byPlace.get(place);
      return now === undefined || now.metadata?.uid === uid || hashOfPod(now, set) === hash;
    };
    return [...this.#places].filter(isMissing).map(([place]) => place);
  }

  /**
   * Returns a sentence if the ledger forgets an evicted pod that has no replacement. The pods of one controller replace
   * each other.
   */
  forgottenProblem(pods: readonly Pod[], departed: readonly Departure[]): string | undefined {
    if (this.#places.size === 0) return undefined;
    const byPlace = new Map(pods.map((pod) => [placeOf(pod), pod]));
    const uids = new Set(departed.map(({ uid }) => uid));
    const isOpen = ([place, { uid, atMs }]: readonly [string, Leaving]) =>
      this.#nowMs() < atMs + AWAITED_MS && (byPlace.get(place)?.metadata?.uid ?? uid) === uid;
    const open = [...this.#places].filter(isOpen);
    const isForgotten = ([, { uid, owner }]: readonly [string, Leaving]) => {
      if (owner === undefined) return !uids.has(uid);
      const lines = departed.filter((one) => one.owner === owner).length;
      return lines < open.filter(([, other]) => other.owner === owner).length;
    };
    const forgotten = open.find(isForgotten);
    return forgotten && `waits no more for another pod in the place of ${forgotten[0]}`;
  }
}

/** Returns namespace/name. */
export function placeOf({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}
