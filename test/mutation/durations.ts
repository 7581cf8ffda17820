/**
 * Stores the time of each test in milliseconds, by file and full name. The times are measured before Stryker starts.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export type Durations = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The variable with the path of the file of times. */
export const DURATIONS = "MUTATION_DURATIONS";

/** Stryker runs a copy of the tests. The copy's paths end like the measured ones. */
export const fileOf = (path: string) => path.slice(path.lastIndexOf("/test/"));

/** Returns the times; undefined: they have not been measured yet. */
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

/** Time that excludes a test: it fails without a mutant, by itself or because it depends on an excluded test. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** The variable that is set while the tests run only to be measured. */
export const MEASURING = "MUTATION_MEASURING";
