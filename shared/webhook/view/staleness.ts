/** Tells the caller that the decision rests on something older than it should be. */
import type { Admission } from "../../core/admission/admission.ts";
import type { Fresh } from "./fresh.ts";
import { addDoubts, doubtOf } from "./trouble.ts";

/** Of one request. */
export class Staleness {
  readonly #doubts: string[] = [];

  /** The value, and a warning about it when it is stale. */
  note<T>(what: string, { value, staleBecause }: Fresh<T>): T {
    if (staleBecause !== undefined) this.#doubts.push(doubtOf(what, staleBecause));
    return value;
  }

  /** The same decision with the warnings, if it allows. */
  warn(admission: Admission): Admission {
    return this.#doubts.length === 0 ? admission : addDoubts(admission, this.#doubts);
  }
}
