/** Why a pod cannot be admitted. */

/** A value, not an exception: a class only so that annotations and containers, whatever is in them, cannot look like one. */
export class Refusal {
  /** OpenKruise's text where it has one */
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
