/** Remembers the present and the earlier labels of the namespaces. The unit of time is one write. */
import type { LabelSelector, Labels, Pod } from "../../shared/api/kubernetes.ts";
import { hasLabels } from "./label-match.ts";

/** True if the selector selects the pod's namespace. */
export type IsInNamespace = (pod: Pod, selector: LabelSelector) => boolean;

interface Spell {
  /** the time at which this state began */
  readonly at: number;
  readonly labels: Labels;
}

export class NamespaceWitness {
  readonly #clock: () => number;
  readonly #spells = new Map<string, readonly Spell[]>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  see(name: string, labels: Labels = {}): void {
    this.#spells.set(name, [...(this.#spells.get(name) ?? []), { at: this.#clock(), labels }]);
  }

  readonly now: IsInNamespace = (pod, selector) => {
    const last = this.#spells.get(pod.metadata?.namespace ?? "")?.at(-1);
    return last !== undefined && hasLabels(last.labels, selector);
  };

  /** True if the selector matched at any time since then: a pass that looked earlier may still use that state. */
  since(time: number): IsInNamespace {
    return (pod, selector) => this.#spellsSince(pod, time).some(({ labels }) => hasLabels(labels, selector));
  }

  /** True if the selector matched at all times since then: every pass must see that state. */
  ever(time: number): IsInNamespace {
    return (pod, selector) => this.#spellsSince(pod, time).every(({ labels }) => hasLabels(labels, selector));
  }

  #spellsSince({ metadata }: Pod, time: number): readonly Spell[] {
    const spells = this.#spells.get(metadata?.namespace ?? "") ?? [];
    return spells.filter((_, index) => (spells[index + 1]?.at ?? Number.POSITIVE_INFINITY) > time);
  }
}
