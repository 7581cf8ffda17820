/** Remembers which ready pods of each owner passes took down, if a SidecarSet limits their number. */
import type { Pod } from "../../shared/api/kubernetes.ts";

export class OwnerWitness {
  readonly #limit: string | undefined;
  /** uid → the pod when it was taken down, and after each change of its labels; the entry ends when the pod works */
  readonly #taken = new Map<string, readonly Pod[]>();
  /** each owner's greatest number of pods so far */
  readonly #most = new Map<string, number>();

  /** `limit`: a number, or a share of the owner's pods; absent: nothing is judged. */
  constructor(limit: string | undefined) {
    this.#limit = limit;
  }

  /** Counts all existing pods. */
  count(pods: () => readonly Pod[]): void {
    if (this.#limit === undefined) return;
    for (const [owner, own] of Map.groupBy(pods(), ownerOf))
      this.#most.set(owner, Math.max(own.length, this.#most.get(owner) ?? 0));
  }

  /** Records a write to a ready pod. */
  take(pod: Pod): void {
    if (this.#limit !== undefined && ownerOf(pod) !== "") this.#taken.set(pod.metadata?.uid ?? "", [pod]);
  }

  /** Records new labels of a pod. */
  relabel(pod: Pod): void {
    const seen = this.#taken.get(pod.metadata?.uid ?? "");
    if (seen) this.#taken.set(pod.metadata?.uid ?? "", [...seen, pod]);
  }

  /**
   * Returns a sentence if too many of the owner's selected pods were down. `selects`: true for a pod that the
   * SidecarSet selects.
   */
  problemOf(pod: Pod, selects: (pod: Pod) => boolean): string | undefined {
    const owner = ownerOf(pod);
    if (this.#limit === undefined || owner === "") return undefined;
    const taken = [...this.#taken.values()].filter((seen) =>
      seen.every((one) => ownerOf(one) === owner && selects(one)),
    );
    const most = this.#limitOf(this.#limit, owner);
    return taken.length > most
      ? `is one of ${taken.length} pods of ${owner} taken down at once, ${most} allowed`
      : undefined;
  }

  /** Forgets a pod that is deleted, or works again. */
  forget(pod: Pod): void {
    this.#taken.delete(pod.metadata?.uid ?? "");
  }

  #limitOf(text: string, owner: string): number {
    const value = Number.parseInt(text, 10);
    return text.endsWith("%") ? Math.ceil((value * (this.#most.get(owner) ?? 0)) / 100) : value;
  }
}

function ownerOf({ metadata }: Pod): string {
  return metadata?.ownerReferences?.[0]?.uid ?? "";
}
