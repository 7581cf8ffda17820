/** A promised figure: its place in figures.json and its target. */

export interface FigureRow {
  readonly what: string;
  /**
   * CI: every run measures it, and fails if it breaks its target; bench: a benchmark, which CI runs shorter or not at
   * all; soak: a long run
   */
  readonly by: "CI" | "bench" | "soak";
  /** day of the measurement */
  readonly measuredAt: string;
  readonly is: number;
  /** number of observations */
  readonly of?: number;
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly isMet: boolean;
  /** true if the table of docs/benchmarks.md shows the figure */
  readonly isMain: boolean;
}

/** A part of figures.json; undefined without a measurement. */
export type Part = Readonly<Record<string, unknown>>;
export type Parts = Readonly<Record<string, unknown>>;

export interface WantedFigure extends Omit<FigureRow, "measuredAt" | "is" | "of" | "isMet" | "isMain"> {
  /** path of the part in figures.json, with dots */
  readonly from: string;
  /** returns the figure; undefined: it was not measured */
  readonly pick: (part: Part) => number | undefined;
  readonly of?: (part: Part) => number | undefined;
  readonly isMain?: boolean;
}

export interface Row {
  readonly [field: string]: unknown;
}

export const rowsOf = (part: Part) => (part["rows"] ?? []) as readonly Row[];

export const numberAt = (value: unknown, path: string): number | undefined => {
  const found = path.split(".").reduce((at: unknown, key) => (at as Row | undefined)?.[key], value);
  return typeof found === "number" ? found : undefined;
};

export const at = (path: string) => (part: Part) => numberAt(part, path);
