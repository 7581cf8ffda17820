/** Remembers how many pods a SidecarSet has selected when. Time is counted in writes. */
import type { Changes } from "./pod-changes.ts";

export class MatchedWitness {
  readonly #now: () => number;
  /** numbers with the time of their beginning, oldest first */
  #spells: { readonly at: number; readonly count: number }[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  count(count: number): void {
    if (this.#spells.at(-1)?.count !== count) this.#spells.push({ at: this.#now(), count });
  }

  /**
   * A sentence when no pass that began then can have counted this number: it may have seen any part of the pods that
   * came, went or got other labels since.
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
