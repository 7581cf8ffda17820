/** Remembers which ready pods of each owner were taken down, if a SidecarSet limits their number. */
import type { Pod } from "../../shared/api/kubernetes.ts";

export class OwnerWitness {
  readonly #limit: string | undefined;
  /** uid → a pod that has not worked since it was taken, in its state then and after each change of its labels */
  readonly #taken = new Map<string, readonly Pod[]>();
  /** the greatest number of pods of each owner */
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

  /** A ready pod is written to. */
  take(pod: Pod): void {
    if (this.#limit !== undefined && ownerOf(pod) !== "") this.#taken.set(pod.metadata?.uid ?? "", [pod]);
  }

  /** Takes in new labels of a pod. */
  relabel(pod: Pod): void {
    const seen = this.#taken.get(pod.metadata?.uid ?? "");
    if (seen) this.#taken.set(pod.metadata?.uid ?? "", [...seen, pod]);
  }

  /** A sentence when the owner had too many pods down among the ones that the SidecarSet selects, as `selects` says. */
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

  /** Forgets a pod that is gone, or works again. */
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
