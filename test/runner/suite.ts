/** A suite runs one vector, and returns the differences between the product's answer and the reference's. */
import type { Difference } from "./compare.ts";

export interface VectorCase {
  readonly name: string;
  readonly kind?: string;
  readonly input: unknown;
  readonly expected: unknown;
}

/**
 * A suite declares the shapes of `input` and `expected`. Inputs are deep-frozen. An exception is a failed case. The
 * type `never` accepts every such function; only the runner calls them.
 */
export type Suite = (
  input: never,
  expected: never,
  vector: VectorCase,
) => readonly Difference[] | Promise<readonly Difference[]>;

/** file name without .json → its suite */
export type SuiteTable = Readonly<Record<string, Suite>>;
