/** Judges from every write to the cluster whether disruption budgets were kept. */
import type { RecordedWrite } from "../../../infra/local/storage/store.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { isReady, isRunning } from "../fixture.ts";
import type { Budget } from "./disruption-controller.ts";

export interface Judged {
  /** a sentence for each restart that the budget had not counted, or that left too few pods */
  readonly broken: readonly string[];
  /** number of restarts in place that were judged */
  readonly restarts: number;
  /** the lowest number of covered pods that were ready at any time after `since` */
  readonly fewestUp: number;
}

/**
 * `name`: the name of the budget and the value of its pods' label `team`. `since`: a sequence number of the history.
 */
export function judgeBudget(history: readonly RecordedWrite[], name: string, since: number): Judged {
  const witness = new BudgetWitness(name);
  for (const write of history) witness.see(write, write.sequence > since);
  return witness.judged;
}

class BudgetWitness {
  readonly #name: string;
  readonly #isUp = new Map<string, boolean>();
  readonly #broken: string[] = [];
  #counted: Readonly<Record<string, string>> = {};
  #restarts = 0;
  #fewestUp = Number.POSITIVE_INFINITY;

  constructor(name: string) {
    this.#name = name;
  }

  get judged(): Judged {
    return { broken: this.#broken, restarts: this.#restarts, fewestUp: this.#fewestUp };
  }

  see(write: RecordedWrite, isRecent: boolean): void {
    const { resource, name, object } = write;
    if (resource === "poddisruptionbudgets" && name === this.#name)
      this.#counted = (object as unknown as Budget).status?.disruptedPods ?? {};
    if (resource !== "pods" || object.metadata.labels?.["team"] !== this.#name) return;
    this.#seePod(write);
    if (isRecent) this.#fewestUp = Math.min(this.#fewestUp, [...this.#isUp.values()].filter(Boolean).length);
  }

  #seePod({ name, object, previous, isRemoved }: RecordedWrite): void {
    const [before, pod] = [previous as unknown as Pod | undefined, object as unknown as Pod];
    if (before && isRestart(before, pod)) {
      this.#restarts++;
      if (isReady(before) && !(name in this.#counted))
        this.#broken.push(
          `${name} was restarted, and only ${Object.keys(this.#counted).join() || "nothing"} is counted`,
        );
    }
    if (isRemoved) this.#isUp.delete(name);
    else this.#isUp.set(name, isReady(pod) && isRunning(pod));
  }
}

function isRestart(before: Pod, after: Pod): boolean {
  const images = ({ spec }: Pod) => spec.containers.map(({ image }) => image).join();
  return images(before) !== images(after);
}
