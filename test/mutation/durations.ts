/**
 * The time of each test of the part, in milliseconds, by its file and its full name; measured before Stryker begins.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export type Durations = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A variable with the path of the file that has them. */
export const DURATIONS = "MUTATION_DURATIONS";

/** Stryker runs a copy of the tests, whose paths end like the measured ones. */
export const fileOf = (path: string) => path.slice(path.lastIndexOf("/test/"));

/** undefined: they have not been measured yet. */
export function readDurations(): Durations | undefined {
  try {
    return JSON.parse(readFileSync(process.env[DURATIONS] ?? "", "utf8"));
  } catch {
    return undefined;
  }
}

export function writeDurations(durations: Durations): void {
  const path = process.env[DURATIONS] ?? "";
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(durations));
}

/** Time of a test that fails without a mutant, alone or because it depends on a test that is left out. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** A variable: the tests run to be measured, and not to find a mutant. */
export const MEASURING = "MUTATION_MEASURING";
