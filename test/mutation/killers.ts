/**
 * The files of `npm run mutation -- --redundant` and `--survivors` in `reports/mutation`: the mutants, and which tests
 * kill them.
 */
import { existsSync, readFileSync } from "node:fs";

export interface Outcome {
  readonly file: string;
  /** rows of a table have the same line */
  readonly line: number;
  readonly title: string;
  /** false: it is slow, or fails when it runs again, so the mutants that it kills are unknown */
  readonly isMeasured: boolean;
  readonly killed: readonly string[];
}

/** Tests that stay, because they are the answers of the reference. */
export const VECTORS = "test/mutation/vectors.test.ts";

/** A variable with the folders and files of the mutants, separated by spaces. */
export const SOURCES = "MUTATED_SOURCES";

/** A variable, because another caller needs only one killer, and may also run slower tests. */
export const SURVIVORS = "MUTATED_SURVIVORS";

/** A change of the code. `line` counts from 1. */
export interface Mutant {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly replacement: string;
}

const path = (name: string) => `reports/mutation/redundant-${name}`;

export const PATHS = {
  mutants: path("mutants.jsonl"),
  outcomes: path("outcomes.jsonl"),
  /** mutants that ran on without end, one a line */
  endless: path("endless.txt"),
  /** the mutant that is switched on now; empty between two tests */
  now: path("now.txt"),
};

export function readLines(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

export const readOutcomes = (): readonly Outcome[] => readLines(PATHS.outcomes).map((line) => JSON.parse(line));
export const readMutants = (): readonly Mutant[] => readLines(PATHS.mutants).map((line) => JSON.parse(line));
