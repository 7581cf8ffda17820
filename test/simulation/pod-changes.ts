/**
 * Remembers when pods came, went and were relabelled. A pass may not have seen changes newer than its list. The unit of
 * time is one write.
 */

export interface Changes {
  readonly came: number;
  readonly gone: number;
  /** pods whose own labels, or whose namespace's labels, changed */
  readonly relabelled: number;
}

interface Change {
  readonly at: number;
  readonly kind: keyof Changes;
  readonly count: number;
}

export class PodChanges {
  readonly #now: () => number;
  readonly #changes: Change[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  add(kind: keyof Changes, count = 1): void {
    this.#changes.push({ at: this.#now(), kind, count });
  }

  since(time: number): Changes {
    const changes = { came: 0, gone: 0, relabelled: 0 };
    for (let index = this.#changes.length - 1; index >= 0; index--) {
      const change = this.#changes[index];
      if (!change || change.at <= time) break;
      changes[change.kind] += change.count;
    }
    return changes;
  }
}
