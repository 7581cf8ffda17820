/** Writes figures to a JSON file, under one key for each part. The figures of other parts stay. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export function readReport(file: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // There is no file before the first part of a run.
    return {};
  }
}

/** Adds the date, and sorts by key. */
export function keepReport(file: string, key: string, figures: object): void {
  const date = new Date().toISOString().slice(0, 10);
  const all = Object.entries({ ...readReport(file), [key]: { date, ...figures } });
  const sorted = Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(sorted, undefined, 2)}\n`);
}
