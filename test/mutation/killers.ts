/**
 * The files in `reports/mutation` of `npm run mutation -- --redundant` and `--survivors`: the mutants, and which tests
 * kill them.
 */
import { existsSync, readFileSync } from "node:fs";

export interface Outcome {
  readonly file: string;
  /** line of the test; rows of a table have the same line */
  readonly line: number;
  readonly title: string;
  /** false: the test is slow or fails when it runs again, so its mutants are unknown */
  readonly isMeasured: boolean;
  readonly killed: readonly string[];
}

/** Tests that are never redundant, because they are the answers of the reference. */
export const VECTORS = "test/mutation/vectors.test.ts";

/** The variable with the folders and files of the mutants, separated by spaces. */
export const SOURCES = "MUTATED_SOURCES";

/** The variable for a search that needs only one killer of a mutant and may run slower tests. */
export const SURVIVORS = "MUTATED_SURVIVORS";

/** A change of the code. `line` starts at 1. */
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
  /** mutants that caused an endless loop, one a line */
  endless: path("endless.txt"),
  /** the mutant that is active now; empty between two tests */
  now: path("now.txt"),
};

export function readLines(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

export const readOutcomes = (): readonly Outcome[] => readLines(PATHS.outcomes).map((line) => JSON.parse(line));
export const readMutants = (): readonly Mutant[] => readLines(PATHS.mutants).map((line) => JSON.parse(line));
