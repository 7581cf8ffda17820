/** The messages to and from the process that answers reviews. */

export interface ReviewsPlan {
  readonly rounds: number;
  /** number of calls in each measured round */
  readonly calls: number;
}

/** Microseconds of computing for one call, a value for each round. */
interface Times {
  readonly read: number[];
  /** from the text of the review to the answer's */
  readonly answered: number[];
}

export interface Reviews {
  readonly cut: Times;
  readonly parsed: Times;
}

/** Adds a space to the JSON, so that the parser cuts nothing out. */
export function wholeBody(body: string): string {
  const whole = body.replace(',"managedFields":[', ', "managedFields":[');
  if (whole === body) throw new Error("the review has no managed fields");
  return whole;
}
