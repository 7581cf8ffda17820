/** Picks the figures of rollouts from their rows. */
import { numberAt, type Part, type Row, rowsOf } from "./wanted-figure.ts";

const known = (values: readonly (number | undefined)[]) => values.filter((value) => value !== undefined);

/** Returns the largest value; undefined: the list is empty. */
const largest = (values: readonly (number | undefined)[]) =>
  known(values).length > 0 ? Math.max(...known(values)) : undefined;

/** Returns the largest value in any row of these kinds. */
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

/** Uses only rows of the product, where `atOnce` is 0. In rows of bare loops it is larger. */
export const mostRefusals = (part: Part): number | undefined =>
  largest(
    rowsOf(part)
      .filter((row) => row["atOnce"] === 0)
      .map((row) => numberAt(row, "refusalsPerPod")),
  );
