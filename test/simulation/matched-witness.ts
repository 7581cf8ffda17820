/** Remembers how many pods a SidecarSet selected at each time. The unit of time is one write. */
import type { Changes } from "./pod-changes.ts";

export class MatchedWitness {
  readonly #now: () => number;
  /** the numbers of pods with their start times, oldest first */
  #spells: { readonly at: number; readonly count: number }[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  count(count: number): void {
    if (this.#spells.at(-1)?.count !== count) this.#spells.push({ at: this.#now(), count });
  }

  /**
   * Returns a sentence if no pass that began at `since` can have counted this number. Such a pass may have seen only
   * some of the pods that came, went or were relabelled.
   */
  problemOf(told: number, since: number, { came, gone, relabelled }: Changes): string | undefined {
    const counts = this.#spells
      .filter((_, index) => (this.#spells[index + 1]?.at ?? Number.POSITIVE_INFINITY) > since)
      .map(({ count }) => count);
    const least = Math.min(...counts) - came - relabelled;
    const most = Math.max(...counts) + gone + relabelled;
    return told < least || told > most ? `counts ${told} pods, there were ${least} to ${most} of them` : undefined;
  }
}
