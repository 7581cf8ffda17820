/** Remembers how many pods a SidecarSet has selected when. Time is counted in writes. */

export class MatchedWitness {
  readonly #now: () => number;
  /** since when there are so many, oldest first */
  #spells: { readonly at: number; readonly count: number }[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  count(count: number): void {
    if (this.#spells.at(-1)?.count !== count) this.#spells.push({ at: this.#now(), count });
  }

  /** A sentence when there were never so many since then. */
  problemOf(told: number, since: number): string | undefined {
    const counts = this.#spells
      .filter((_, index) => (this.#spells[index + 1]?.at ?? Number.POSITIVE_INFINITY) > since)
      .map(({ count }) => count);
    // Pods that come and go while a list is read, page by page and namespace by namespace, may be seen together.
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    return told < least || told > most ? `counts ${told} pods, there were ${least} to ${most} of them` : undefined;
  }
}
