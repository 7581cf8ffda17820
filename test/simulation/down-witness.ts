/** Remembers evicted pods, and since when each pod is not ready, for any reason. The unit of time is one write. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { hashOfPod, isPodReady } from "./objects.ts";

const NEVER = Number.POSITIVE_INFINITY;

export class DownWitness {
  readonly #set: string;
  readonly #clock: () => number;
  /** uids of existing pods that a pass evicted while they were ready */
  readonly #evicted = new Set<string>();
  /** uid → time since which the pod is not ready */
  readonly #downSince = new Map<string, number>();
  /** uid → time since which the pod has its hash of the SidecarSet */
  readonly #hashSince = new Map<string, number>();

  constructor(set: string, clock: () => number) {
    this.#set = set;
    this.#clock = clock;
  }

  see(previous: Pod | undefined, pod: Pod, isRemoved: boolean): void {
    const uid = pod.metadata?.uid ?? "";
    if (isRemoved) this.#evicted.delete(uid);
    if (isRemoved || isPodReady(pod)) this.#downSince.delete(uid);
    else if (!this.#downSince.has(uid)) this.#downSince.set(uid, this.#clock());
    if (!previous || hashOfPod(previous, this.#set) !== hashOfPod(pod, this.#set))
      this.#hashSince.set(uid, this.#clock());
  }

  evict({ metadata }: Pod): void {
    this.#evicted.add(metadata?.uid ?? "");
  }

  countEvicted(pods: () => readonly Pod[]): number {
    if (this.#evicted.size === 0) return 0;
    return pods().filter(({ metadata }) => this.#evicted.has(metadata?.uid ?? "")).length;
  }

  /** True if the pod is being deleted, or has not been ready since before that time. */
  isDown({ metadata }: Pod, time: number): boolean {
    const uid = metadata?.uid ?? "";
    return this.#evicted.has(uid) || (this.#downSince.get(uid) ?? NEVER) < time;
  }

  /** True if the pod has not been ready since before that time, and got this hash even before. */
  isDownWith(pod: Pod, hash: string, time: number): boolean {
    const isOld = (this.#hashSince.get(pod.metadata?.uid ?? "") ?? NEVER) < time;
    return isOld && hashOfPod(pod, this.#set) === hash && this.isDown(pod, time);
  }
}
