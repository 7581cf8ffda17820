/** Tells the caller that the decision rests on something older than it should be. */
import type { Admission } from "../../core/admission/admission.ts";
import type { Fresh } from "./fresh.ts";

/** How each warning begins. */
export const STALE_WORDS = "decided on an earlier state of";

/** Of one request. */
export class Staleness {
  /** absent: none, as nearly always */
  #warnings: Set<string> | undefined;

  /** The value, and a warning about it when it is stale. */
  note<T>(what: string, { value, staleBecause }: Fresh<T>): T {
    if (staleBecause !== undefined) {
      const reason = staleBecause instanceof Error ? staleBecause.message : String(staleBecause);
      this.#warnings ??= new Set();
      this.#warnings.add(`${STALE_WORDS} ${what}, which cannot be read now: ${reason}`);
    }
    return value;
  }

  /** The same decision with the warnings, if it allows. */
  warn(admission: Admission): Admission {
    if (admission.kind === "denied" || this.#warnings === undefined) return admission;
    return { ...admission, warnings: [...(admission.warnings ?? []), ...[...this.#warnings].toSorted()] };
  }
}
