/** The figures of rollouts, picked from their rows. */
import { numberAt, type Part, type Row, rowsOf } from "./wanted-figure.ts";

const known = (values: readonly (number | undefined)[]) => values.filter((value) => value !== undefined);

/** undefined: the list is empty */
const largest = (values: readonly (number | undefined)[]) =>
  known(values).length > 0 ? Math.max(...known(values)) : undefined;

/** The most in any row of these kinds. */
export const rolled = (kinds: readonly string[], path: string) => (part: Part) =>
  largest(
    rowsOf(part)
      .filter((row) => kinds.includes(String(row["kind"])))
      .map((row) => numberAt(row, path)),
  );

const ratios = (part: Part, name: string) =>
  ((part[name] ?? []) as readonly Row[]).map((row) => numberAt(row, "ratio"));

export const leastOfBareLoop = (part: Part): number | undefined => {
  const all = known(ratios(part, "ofBareLoop"));
  return all.length > 0 ? Math.min(...all) : undefined;
};

export const mostOfIdeal = (part: Part): number | undefined => largest(ratios(part, "ofIdeal"));

/** Rows of the product, and not of the bare loops, which have an `atOnce` too. */
export const mostRefusals = (part: Part): number | undefined =>
  largest(
    rowsOf(part)
      .filter((row) => row["atOnce"] === 0)
      .map((row) => numberAt(row, "refusalsPerPod")),
  );
